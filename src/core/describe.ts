import type { RankRequest, Role } from './model.ts';

/** How messages name a member: `Sam (1001)`, or `Member 1001` where the caller gave no name. */
export function memberTitle({ rankeeName, rankeeId }: Pick<RankRequest, 'rankeeName' | 'rankeeId'>): string {
  return rankeeName === '' ? `Member ${rankeeId}` : `${shorten(rankeeName, 40)} (${rankeeId})`;
}

/** How messages name a role: `Officer (rank 20)`. */
export function roleTitle({ name, rank }: Pick<Role, 'name' | 'rank'>): string {
  return `${shorten(name, 40)} (rank ${rank})`;
}

/** At most `most` characters, cut between characters and never inside one. */
export function shorten(text: string, most: number): string {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : text;
}
