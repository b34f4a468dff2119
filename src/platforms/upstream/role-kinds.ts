import { RankdError } from '../../base/errors.ts';
import type { Role } from '../../core/model.ts';
import type { ListedRole } from './resources.ts';

/**
 * The roles with their kinds, ascending by rank, then by id. Only the public role list marks the base role; `flaggedBaseId` is
 * absent if that list could not be read. Then it is the only role of rank 1; throws `platform_unavailable` if there are two.
 */
export function withKinds(listed: ListedRole[], flaggedBaseId: number | undefined): Role[] {
  const sorted = [...listed].sort((a, b) => a.rank - b.rank || a.id - b.id);
  const baseId = sorted.some(({ id }) => id === flaggedBaseId) ? flaggedBaseId : onlyRankOne(sorted);
  return sorted.map((role) => {
    if (role.id === baseId) return { ...role, kind: 'base' };
    if (role.rank === 0) return { ...role, kind: 'guest' };
    return { ...role, kind: role.rank === 255 ? 'owner' : 'custom' };
  });
}

/** True if only the mark tells which role is the base role. */
export function needsFlag(listed: ListedRole[]): boolean {
  return rankOnes(listed).length > 1;
}

function onlyRankOne(roles: ListedRole[]): number | undefined {
  if (!needsFlag(roles)) return rankOnes(roles)[0]?.id;
  throw new RankdError(
    'platform_unavailable',
    "Two roles of the group have rank 1, and Roblox's public role list, which says which of them every member holds, can't be read.",
    {
      hint: 'check that platform.legacy_base_url can be reached from this machine, or give one of the two another rank',
    },
  );
}

/** Groups from before March 2026 got their base role added at rank 1, where they may have had a role already. */
function rankOnes(roles: ListedRole[]): ListedRole[] {
  return roles.filter(({ rank }) => rank === 1);
}
