import type { RankRequest, Role } from './model.ts';

/** How messages name a member: `Sam (1001)`, or `Member 1001` where the caller gave no name. */
export function memberTitle({ rankeeName, rankeeId }: Pick<RankRequest, 'rankeeName' | 'rankeeId'>): string {
  return rankeeName === '' ? `Member ${rankeeId}` : `${rankeeName.slice(0, 40)} (${rankeeId})`;
}

/** How messages name a role: `Officer (rank 20)`. */
export function roleTitle({ name, rank }: Pick<Role, 'name' | 'rank'>): string {
  return `${name.slice(0, 40)} (rank ${rank})`;
}
