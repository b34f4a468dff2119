import { isOutsider, standingWords } from '../../core/acting-account.ts';
import { listRoles, roleTitle, userTitle } from '../../core/describe.ts';
import type { RoleName } from '../../core/role-scheme.ts';
import { listGroupRoles, showGroup } from '../../usecases/group/group.ts';
import { groupDocument, membersDocument, roleDocument } from '../../usecases/group/group-document.ts';
import { listMembers } from '../../usecases/group/members.ts';
import type { Cli } from '../cli.ts';
import { argument, command, commandGroup, option, type ValuesOf } from '../command.ts';
import { asRank, wholeNumber } from '../input/arguments.ts';
import { facts, table } from '../output/table.ts';

const membersOptions = {
  limit: option('--limit <n>', 'at most this many', wholeNumber(1, 100_000), 100),
  after: option('--after <cursor>', 'continue an earlier list from the cursor that it ended with'),
};

export const groupCommands = commandGroup({
  name: 'group',
  about: 'the group as Roblox shows it',
  examples: ['rankd group show', 'rankd group roles', 'rankd group members Officer'],
  commands: [
    command({
      name: 'show',
      about: 'its name and owner, the account that rankd uses, and the ranks that rankd can give',
      examples: ['rankd group show', 'rankd group show --json'],
      run: show,
    }),
    command({
      name: 'roles',
      about: 'every role with its rank and id',
      examples: ['rankd group roles', 'rankd group roles --json'],
      run: roles,
    }),
    command({
      name: 'members',
      about: 'the members who hold a role, read from Roblox',
      args: [argument('<role>', 'role name, role id or rank number', asRank)],
      options: membersOptions,
      help: '\nOnly names that rankd already knows are shown.\n',
      examples: ['rankd group members Officer', 'rankd group members VIP --limit 10000 --json'],
      run: members,
    }),
  ],
});

async function show(cli: Cli): Promise<void> {
  await cli.withGroup(async (app, call) => {
    const found = await showGroup(app, call);
    const { acting, givable } = found;
    const document = groupDocument(found);
    cli.print(
      { group: document },
      facts({
        ...document,
        acting:
          acting === undefined
            ? 'not shown by Roblox'
            : `${userTitle(acting.userId, acting.name)}, ${standingWords(acting)}`,
        givable: null,
        'can give': givable === undefined ? null : listRoles(givable) || 'nothing',
      }),
    );
    if (acting !== undefined && isOutsider(acting))
      cli.say('try: have the acting account join the group, and give it a role there');
    else if (acting?.mayChangeRanks === false)
      cli.say(
        'try: give the role of the acting account the permission "Manage lower-ranked member ranks" in the group',
      );
    else if (givable?.length === 0) cli.say('try: give the acting account a higher role in the group');
  });
}

async function roles(cli: Cli): Promise<void> {
  await cli.withGroup(async (app, call) => {
    const documents = (await listGroupRoles(app, call)).map(roleDocument);
    const rows = documents.map(({ rank, id, name, kind, onLadder, privileged, powers }) => [
      String(rank),
      String(id),
      kind,
      yesOrNo(onLadder, '-'),
      kind === 'custom' ? powers?.join(', ') || yesOrNo(privileged, '?') : '-',
      name,
    ]);
    cli.print({ roles: documents }, table(['rank', 'id', 'kind', 'ladder', 'privileged', 'name'], rows));
    if (app.policy.privilegedRoles === 'operator' && documents.some(isUnclear))
      cli.say(
        '?: Roblox does not show what the role may do. If it has power over others, add it to policy.privileged_roles.',
      );
  });
}

async function members(cli: Cli, role: RoleName, options: ValuesOf<typeof membersOptions>): Promise<void> {
  await cli.withGroup(async (app, call) => {
    const found = await listMembers(app, { role, ...options }, call);
    const rows = found.members.map(({ id, name }) => [String(id), name || '-']);
    cli.print(membersDocument(found), table(['user', 'name'], rows));
    if (found.members.length === 0)
      cli.say(`No ${options.after ? 'other ' : ''}member holds ${roleTitle(found.role)}.`);
    if (found.next !== undefined)
      cli.say(`There are more: rankd group members ${found.role.id} --limit ${options.limit} --after ${found.next}`);
  });
}

function isUnclear({ kind, privileged }: ReturnType<typeof roleDocument>): boolean {
  return kind === 'custom' && privileged === null;
}

function yesOrNo(answer: boolean | null, unknown: string): string {
  if (answer === null) return unknown;
  return answer ? 'yes' : 'no';
}
