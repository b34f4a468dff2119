import type { RankChange } from '../../core/model.ts';

/** The value of a setting for a person. */
export function settingText(value: unknown): string {
  if (value === undefined || value === null) return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A member in a table: the id alone if the caller gave no name. */
export function rankeeTitle({ rankeeName, rankeeId }: Pick<RankChange, 'rankeeName' | 'rankeeId'>): string {
  return rankeeName === '' ? String(rankeeId) : `${rankeeName} (${rankeeId})`;
}
