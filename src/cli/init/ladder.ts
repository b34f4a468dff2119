import { listRoles } from '../../core/list-roles.ts';
import type { Role } from '../../core/model.ts';
import { nameForRequest, type RoleScheme } from '../../core/role-scheme.ts';
import type { Cli } from '../cli.ts';
import { isAgreed } from '../input/confirm.ts';

/** The roles of the ladder, ascending; `undefined` if there is to be none. */
export async function chooseLadder(
  cli: Cli,
  { ladder }: { ladder?: boolean },
  givable: Role[],
): Promise<Role[] | undefined> {
  const { proposed, leftOut } = proposeLadder(givable);
  const isAsked = ladder || cli.io.isTerminal;
  if (leftOut.length > 0 && isAsked)
    cli.say(`Not for a ladder, as they share a rank, so that none is above the other: ${listRoles(leftOut)}.`);
  if (proposed.length === 0 || !isAsked) return undefined;
  if (ladder) return proposed;
  cli.say(
    'With a promotion ladder, rankd keeps each member in exactly one of its roles and leaves all other roles alone.\nIf you are not sure, press Enter.',
  );
  return (await isAgreed(cli, `Make these the ladder: ${listRoles(proposed)}?`, { preset: true }))
    ? proposed
    : undefined;
}

/** The custom roles, without those that share a rank with another: no ladder can hold both. */
function proposeLadder(givable: Role[]): { proposed: Role[]; leftOut: Role[] } {
  const custom = givable.filter(({ kind }) => kind === 'custom');
  const isShared = (role: Role) => custom.some(({ id, rank }) => rank === role.rank && id !== role.id);
  return { proposed: custom.filter((role) => !isShared(role)), leftOut: custom.filter(isShared) };
}

/** The roles as the configuration names them. */
export function ladderEntries(group: Pick<RoleScheme, 'roles' | 'rankOne'>, ladder: Role[]): number[] {
  return ladder.map((role) => nameForRequest(group, role));
}
