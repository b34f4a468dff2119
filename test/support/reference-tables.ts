import { type ErrorCode, reasons } from '../../src/base/errors.ts';
import { exitCodes } from '../../src/cli/output/errors.ts';
import { type EntrySetting, keySettings, settings, webhookSettings } from '../../src/config/settings.ts';
import { publicCodes, statuses } from '../../src/http/errors.ts';

const codes = Object.keys(reasons) as ErrorCode[];

/** Codes that a game can meet, by status. */
export function errorTable(): string[] {
  return table(
    ['status', '`code`', '`error`'],
    publicCodes
      .toSorted((a, b) => statuses[a] - statuses[b])
      .map((code) => [String(statuses[code]), code, reasons[code]]),
  );
}

export function exitTable(): string[] {
  const byExit = Map.groupBy(codes, (code) => exitCodes[code]);
  const rows = [...byExit].toSorted(([a], [b]) => a - b).map(([exit, group]) => [String(exit), group.join(', ')]);
  return table(['exit code', 'error codes'], [['0', 'done, or yes'], ...rows, ['130', 'interrupted']]);
}

export function settingsTable(): string[] {
  return table(
    ['setting', 'default', 'what it does'],
    settings.map(({ path, default: preset, description }) => [`\`${path}\``, shown(preset), description]),
  );
}

export function keySettingsTable(): string[] {
  return entryTable(keySettings);
}

export function webhookSettingsTable(): string[] {
  return entryTable(webhookSettings);
}

function entryTable(entries: readonly EntrySetting[]): string[] {
  return table(
    ['setting', 'default', 'what it does'],
    entries.map(({ path, default: preset, isRequired, description }) => [
      `\`${path}\``,
      isRequired ? 'required' : shown(preset),
      description,
    ]),
  );
}

function shown(value: unknown): string {
  return value === undefined ? '' : `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

export function table(headings: string[], rows: string[][]): string[] {
  return [headings, headings.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
}
