import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';

/** The roles of the sample group that a member can hold in addition to the base role, by rank. */
const roleIdsByRank: Record<number, number> = {
  1: sampleRoles.recruit,
  10: sampleRoles.trainee,
  20: sampleRoles.officer,
  50: sampleRoles.captain,
  200: sampleRoles.admin,
};

/** The rank of the acting account, which reaches only lower roles. */
const actingRank = 200;
/** The base role, which can be requested only by its id, is below all of them. */
const baseRank = 0;

/** The model's expectation for a request: its status, and the roles afterwards, in addition to the base role. */
export interface Expected {
  status: number;
  held: number[] | undefined;
}

/**
 * The simplest model of a rank change: no platform, no failure, no time. `held`: `undefined` for a user who is not a
 * member.
 */
export function expectedOf(held: number[] | undefined, ask: { userId: number; rank: number }): Expected {
  const { userId } = ask;
  const no = (status: number) => ({ status, held });
  if (ask.rank === 0 || ask.rank === 255) return no(403);
  const rank = ask.rank === sampleRoles.base ? baseRank : ask.rank;
  if (rank !== baseRank && roleIdsByRank[rank] === undefined) return no(400);
  if (userId === sampleUsers.owner || userId === sampleUsers.actor) return no(403);
  if (held === undefined) return no(404);
  const ranks = held.map(rankOf);
  const top = Math.max(baseRank, ...ranks);
  if (top === rank) return { status: 200, held };
  if (top >= actingRank || rank >= actingRank) return no(403);
  const kept = ranks.filter((one) => one !== top && one < rank);
  return {
    status: 200,
    held: [...kept, rank]
      .filter((one) => one !== baseRank)
      .map(roleIdOf)
      .sort((a, b) => a - b),
  };
}

function rankOf(roleId: number): number {
  const [rank] = Object.entries(roleIdsByRank).find(([, id]) => id === roleId) ?? [];
  if (rank === undefined) throw new RangeError(`the model does not know role ${roleId}`);
  return Number(rank);
}

function roleIdOf(rank: number): number {
  return roleIdsByRank[rank] ?? 0;
}
