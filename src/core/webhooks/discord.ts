import { controlCharacters } from '../../base/text.ts';

/** A message in Discord's format: https://discord.com/developers/docs/resources/webhook#execute-webhook */
export interface DiscordMessage {
  username: 'rankd';
  content?: string;
  allowed_mentions: { parse: []; roles?: string[] };
  /** 4096 suppresses notifications. */
  flags?: 4096;
  embeds?: Embed[];
}

export interface Embed {
  title: string;
  url?: string;
  color: number;
  timestamp?: string;
  description: string;
  fields?: Array<{ name: string; value: string; inline?: true }>;
  footer?: { text: string };
}

export const colors = {
  promotion: 5763719,
  demotion: 16098851,
  sideways: 5793266,
  refused: 9807270,
  undo: 3447003,
  suspension: 15105570,
  alarm: 15548997,
} as const;

/**
 * Discord's limits. `embeds` is a count per message. The others are lengths in UTF-16 units: `title` and `description`
 * of one embed, `total` of all embeds together.
 */
export const limits = { content: 2000, embeds: 10, title: 256, description: 4096, total: 6000 } as const;

export function quietMessage(embeds: Embed[]): DiscordMessage {
  return { username: 'rankd', allowed_mentions: { parse: [] }, flags: 4096, embeds };
}

/** Returns a message that notifies the channel, and mentions the role if there is one. */
export function loudMessage(embeds: Embed[], roleId: string | undefined): DiscordMessage {
  if (roleId === undefined) return { username: 'rankd', allowed_mentions: { parse: [] }, embeds };
  return { username: 'rankd', content: `<@&${roleId}>`, allowed_mentions: { parse: [], roles: [roleId] }, embeds };
}

/** Returns a plain one-line message, to send in place of one that Discord refused. */
export function plainMessage(line: string): DiscordMessage {
  return { username: 'rankd', content: line.slice(0, limits.content).toWellFormed(), allowed_mentions: { parse: [] } };
}

export function fits(embeds: readonly Embed[]): boolean {
  return embeds.length <= limits.embeds && embeds.reduce((sum, embed) => sum + lengthOf(embed), 0) <= limits.total;
}

function lengthOf({ title, description, fields = [], footer }: Embed): number {
  const texts = [title, description, footer?.text ?? '', ...fields.flatMap(({ name, value }) => [name, value])];
  return texts.reduce((sum, text) => sum + text.length, 0);
}

/**
 * Escapes text from games and players for Discord, so that it can't mention anyone, contain a link, or change the
 * message's formatting. Truncates it to `max` UTF-16 units, the unit in which Discord counts.
 */
export function quoted(text: string, max: number): string {
  const plain = text
    .toWellFormed()
    .replaceAll(controlCharacters, '')
    .replaceAll(/(\p{M}{2})\p{M}+/gu, '$1');
  let escaped = '';
  for (const [next] of plain.replaceAll(special, '\\$&').matchAll(/\\?./gsu)) {
    if (escaped.length + next.length >= max) return `${escaped}…`;
    escaped += next;
  }
  return escaped;
}

/**
 * Matches the characters that begin Markdown, mentions and timestamps on Discord, and the dot in a domain name, which
 * Discord may show as an invitation.
 */
const special = /[\\*_~`|>#[\]()<@:-]|\.(?=\p{L})/gu;

/** Returns a link to the user's profile, or only the text if there is no user or the user was forgotten. */
export function profileLink(text: string, userId: number): string {
  return userId > 0 ? `[${text}](${profileOf(userId)})` : text;
}

export function profileOf(userId: number): string {
  return `https://www.roblox.com/users/${userId}/profile`;
}
