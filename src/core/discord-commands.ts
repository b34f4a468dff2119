/** Discord's number for the option type STRING. */
const text = 3;

const user = {
  type: text,
  name: 'user',
  description: 'Roblox name, user id, profile address, or a mention of someone who is linked',
  required: true,
  max_length: 200,
};
/** The maximum length of a reason, which both Discord and rankd enforce. */
export const maxDiscordReason = 500;
const reason = { type: text, name: 'reason', description: 'Reason, for the history', max_length: maxDiscordReason };
const rank = {
  type: text,
  name: 'rank',
  description: 'Rank: choose one, or type a number, a role id or a name',
  required: true,
  autocomplete: true,
  max_length: 100,
};
const action = {
  type: text,
  name: 'action',
  description: 'Give the role, or take it',
  required: true,
  choices: [
    { name: 'add', value: 'add' },
    { name: 'remove', value: 'remove' },
  ],
};
const role = { ...rank, name: 'role', description: 'Role that is not on the ladder: a name, a number or a role id' };
const duration = {
  type: text,
  name: 'duration',
  description: 'How long, such as 3d, 12h or 30m',
  required: true,
  max_length: 20,
};

export const discordCommands = [
  { name: 'promote', description: 'Give a member the next higher rank', options: [user, reason] },
  { name: 'demote', description: 'Give a member the next lower rank', options: [user, reason] },
  { name: 'setrank', description: 'Give a member a rank', options: [user, rank, reason] },
  { name: 'role', description: 'Give a member an extra role, or take one away', options: [user, action, role, reason] },
  { name: 'suspend', description: 'Take all roles from a member temporarily', options: [user, duration, reason] },
  {
    name: 'unsuspend',
    description: 'End a suspension and give the member their previous roles back',
    options: [user, reason],
  },
  { name: 'whois', description: 'Show the rank and roles of a Roblox user', options: [user] },
  { name: 'undo', description: 'Undo your own last change, if it is at most 10 minutes old', options: [] },
  { name: 'link', description: 'Show which Roblox user you are linked to', options: [] },
] as const;

export type DiscordCommandName = (typeof discordCommands)[number]['name'];

/** The commands in the form in which rankd registers them with Discord. Type 1 is a slash command. */
export const registeredCommands = discordCommands.map((command) => ({ type: 1, ...command }));
