import { listRoles } from '../../core/list-roles.ts';
import type { Role } from '../../core/model.ts';
import type { Cli } from '../cli.ts';
import { isAgreed } from './questions.ts';

/** The roles of the ladder, ascending; `undefined` if there is to be none. */
export async function chooseLadder(
  cli: Cli,
  { ladder }: { ladder?: boolean },
  givable: Role[],
): Promise<Role[] | undefined> {
  const proposed = givable.filter(({ kind }) => kind === 'custom');
  if (proposed.length === 0) return undefined;
  if (ladder) return proposed;
  if (!cli.io.isTerminal) return undefined;
  cli.say(
    'With a promotion ladder, rankd keeps each member in exactly one of its roles and leaves all other roles alone.',
  );
  return (await isAgreed(cli.io, `Make these the ladder: ${listRoles(proposed)}?`)) ? proposed : undefined;
}

/** The roles as the configuration names them: by rank, or by id if two share that rank. */
export function ladderEntries(ladder: Role[]): number[] {
  const isShared = (rank: number) => ladder.filter((role) => role.rank === rank).length > 1;
  return ladder.map(({ id, rank }) => (isShared(rank) ? id : rank));
}
