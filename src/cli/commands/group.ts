import type { Command } from 'commander';
import { isOutsider, reaches, standingWords } from '../../core/acting-account.ts';
import { listRoles } from '../../core/list-roles.ts';
import type { ActingAccount, Role } from '../../core/model.ts';
import { givableRoles } from '../../core/role-scheme.ts';
import type { Policy } from '../../core/rules/rule.ts';
import { isNamed } from '../../core/rules/touched-roles.ts';
import type { Cli } from '../cli.ts';
import { facts } from '../output/facts.ts';
import { examples } from '../output/help.ts';
import { table } from '../output/table.ts';

export function groupCommands(program: Command, cli: Cli): void {
  const group = program
    .command('group')
    .description('the group as the platform shows it')
    .addHelpText('after', examples('rankd group show', 'rankd group roles'));
  group
    .command('show')
    .description('name, owner, the account rankd acts with and what it can give')
    .addHelpText('after', examples('rankd group show', 'rankd group show --json'))
    .action(() => show(cli));
  group
    .command('roles')
    .description('every role with its rank and id')
    .addHelpText('after', examples('rankd group roles', 'rankd group roles --json'))
    .action(() => roles(cli));
}

async function show(cli: Cli): Promise<void> {
  await cli.withGroup(async (app, call) => {
    const acting = await app.group.acting(call);
    const scheme = await app.group.scheme(call);
    const { id, name, memberCount, ownerId = null } = await app.platform.group(call);
    const givable =
      acting === undefined
        ? null
        : givableRoles(scheme).filter((role) => isAllowed(role, { acting, policy: app.policy }));
    const actingDocument =
      acting === undefined
        ? null
        : { userId: acting.userId, rank: acting.rank, isOwner: acting.userId === acting.ownerId };
    const document = { id, name, memberCount, ownerId };
    cli.print(
      {
        group: {
          ...document,
          acting: actingDocument,
          givable: givable?.map(({ rank, id, name }) => ({ rank, id, name })) ?? null,
        },
      },
      facts({
        ...document,
        acting: acting === undefined ? 'the platform does not say' : `${acting.userId} (${standingWords(acting)})`,
        'can give': givable === null ? null : listRoles(givable) || 'nothing',
      }),
    );
    if (acting !== undefined && isOutsider(acting))
      cli.say('try: let the acting account join the group, and give it a role there');
    else if (givable?.length === 0) cli.say('try: give the acting account a higher role in the group');
  });
}

async function roles(cli: Cli): Promise<void> {
  await cli.withGroup(async (app, call) => {
    const scheme = await app.group.scheme(call);
    const rungs = scheme.ladder === undefined ? undefined : givableRoles(scheme);
    const documents = scheme.roles.map((role) => {
      const { rank, id, name, kind } = role;
      return { rank, id, name, kind, onLadder: rungs?.includes(role) ?? null };
    });
    const rows = documents.map(({ rank, id, name, kind, onLadder }) => [
      String(rank),
      String(id),
      kind,
      onLadder === null ? '-' : onLadder ? 'yes' : 'no',
      name,
    ]);
    cli.print({ roles: documents }, table(['rank', 'id', 'kind', 'ladder', 'name'], rows));
  });
}

/** True for a role within the account's reach and the policy. */
function isAllowed(role: Role, { acting, policy }: { acting: ActingAccount; policy: Policy }): boolean {
  const isWithin = role.rank >= policy.minRank && role.rank <= policy.maxRank && reaches(acting, role);
  return isWithin && !isNamed(role, policy.lockedRoles);
}
