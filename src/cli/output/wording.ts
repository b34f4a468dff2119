import type { Command } from 'commander';
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

/**
 * The text with its commands (`rankd key list`) as the user would type them here: if `npx` started rankd, it is not on the shell's
 * path. npm names its own command in the environment of what it starts.
 */
export function asTyped(text: string, program: Command, { npm_command }: Record<string, string | undefined>): string {
  if (npm_command !== 'exec') return text;
  const names = program.commands.map((command) => command.name()).join('|');
  return text.replaceAll(new RegExp(`\\brankd (?=(?:${names})\\b|--|\\[)`, 'g'), 'npx rankd ');
}
