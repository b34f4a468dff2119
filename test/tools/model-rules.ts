import type { RoleChangeKind } from '../../src/core/model.ts';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';

/** The sample group's roles that a member can hold in addition to the base role, keyed by rank. */
const roleIdsByRank: Record<number, number> = {
  1: sampleRoles.recruit,
  10: sampleRoles.trainee,
  20: sampleRoles.officer,
  50: sampleRoles.captain,
  200: sampleRoles.admin,
};

/** The acting account's rank. The account can change only lower roles. */
const actingRank = 200;
/**
 * The base role's rank in the model. Requests name the base role by its id, because on Roblox it shares rank 1 with the
 * role `recruit`.
 */
const baseRank = 0;

export const ladder = [1, 10, 20];
/** The rank of a role that is not on the ladder. */
export const alongside = 50;

/** A request's expected status, and the member's roles afterwards, apart from the base role. */
export interface Expected {
  status: number;
  held: number[] | undefined;
}

/** Predicts the result of a rank change that no failure affects. `held`: `undefined` for a user who is not a member. */
export function expectedOf(
  held: number[] | undefined,
  ask: { userId: number; rank: number; kind?: RoleChangeKind | undefined },
  hasLadder: boolean,
): Expected {
  const { userId, kind } = ask;
  const no = (status: number) => ({ status, held });
  if (kind !== undefined) return expectedAlongside(held, { ...ask, kind }, hasLadder);
  if (ask.rank === 0 || ask.rank === 255) return no(403);
  const rank = ask.rank === sampleRoles.base ? baseRank : ask.rank;
  if (rank !== baseRank && roleIdsByRank[rank] === undefined) return no(400);
  if (hasLadder && rank !== baseRank && !ladder.includes(rank)) return no(403);
  if (userId === sampleUsers.owner || userId === sampleUsers.actor) return no(403);
  if (held === undefined) return no(404);
  const ranks = held.map(rankOf);
  const counted = ranks.filter((one) => !hasLadder || ladder.includes(one));
  const top = Math.max(baseRank, ...counted);
  if (top === rank && (!hasLadder || counted.length <= 1)) return { status: 200, held };
  if (Math.max(baseRank, ...ranks) >= actingRank || rank >= actingRank) return no(403);
  const kept = ranks.filter((one) => !counted.includes(one) || (!hasLadder && one !== top && one < rank));
  return { status: 200, held: idsOf([...kept, rank]) };
}

/** Predicts the result of adding or removing the role `alongside`, which does not change other roles. */
function expectedAlongside(
  held: number[] | undefined,
  { userId, rank, kind }: { userId: number; rank: number; kind: RoleChangeKind },
  hasLadder: boolean,
): Expected {
  const no = (status: number) => ({ status, held });
  if (!hasLadder) return no(409);
  if (rank !== alongside)
    return no(roleIdsByRank[rank] === undefined && rank <= 255 && rank !== 0 && rank !== 255 ? 400 : 403);
  if (userId === sampleUsers.owner || userId === sampleUsers.actor) return no(403);
  if (held === undefined) return no(404);
  const ranks = held.map(rankOf);
  if (ranks.includes(rank) === (kind === 'role_added')) return { status: 200, held };
  if (Math.max(baseRank, ...ranks) >= actingRank) return no(403);
  const others = ranks.filter((one) => one !== rank);
  return { status: 200, held: idsOf(kind === 'role_added' ? [...others, rank] : others) };
}

function idsOf(ranks: number[]): number[] {
  return ranks
    .filter((one) => one !== baseRank)
    .map(roleIdOf)
    .sort((a, b) => a - b);
}

function rankOf(roleId: number): number {
  const [rank] = Object.entries(roleIdsByRank).find(([, id]) => id === roleId) ?? [];
  if (rank === undefined) throw new RangeError(`the model does not know role ${roleId}`);
  return Number(rank);
}

function roleIdOf(rank: number): number {
  return roleIdsByRank[rank] ?? 0;
}
