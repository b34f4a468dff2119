import { type ErrorCode, reasons } from '../../src/base/errors.ts';
import { exitCodes } from '../../src/cli/output/errors.ts';
import { type EntrySetting, keySettings, settings, webhookSettings } from '../../src/config/settings.ts';
import { publicCodes, statuses } from '../../src/http/errors.ts';
import { fieldRows, parameterRows } from '../../src/http/openapi/document.ts';
import { isDescribed, type Route } from '../../src/http/route.ts';
import { routes } from '../../src/http/routes/all.ts';

const codes = Object.keys(reasons) as ErrorCode[];

export function errorTable(): string[] {
  return table(
    ['status', '`code`', '`error`'],
    publicCodes
      .toSorted((a, b) => statuses[a] - statuses[b])
      .map((code) => [String(statuses[code]), code, reasons[code]]),
  );
}

const operations = routes.filter(isDescribed);

export function operationTable(): string[] {
  return table(
    ['operation', 'what it does', 'scope', 'request', '200'],
    operations.map((route) => {
      const { method, path, docs, key, body, answers = [] } = route;
      const parameters = parameterRows(route).map(([name, where]) => `${where}: ${name}`);
      const fields = body?.schema ? [`body: ${namesOf(fieldRows(body.schema))}`] : [];
      const returned = answers.flatMap(({ schema }) => (schema ? fieldRows(schema) : []));
      return [
        `\`${method} ${path}\``,
        docs.description,
        key === undefined ? '' : `\`${key.scope}\``,
        [...parameters, ...fields].join('<br>'),
        returned.length === 0 || answers.length > 1 ? String(answers[0]?.description) : namesOf(returned),
      ];
    }),
  );
}

/** Lists the names of all fields, including nested ones; optional fields come last. */
function namesOf(rows: string[][]): string {
  const name = ([field, type = '']: string[]) => `${field}${/ \(.+\)$/.exec(type)?.[0] ?? ''}`;
  const { optional = [], '': required = [] } = Object.groupBy(rows, ([, , isOptional = '']) => isOptional);
  const lists = [required.map(name).join(', '), optional.length > 0 ? `optional ${optional.map(name).join(', ')}` : ''];
  return lists.filter((list) => list !== '').join('; ');
}

export function requestFieldTable(): string[] {
  return fieldTable((route) => [
    ...parameterRows(route).map(([name = '', where = '', description = '']) => [name, where, '', description]),
    ...(route.body?.schema ? fieldRows(route.body.schema) : []),
  ]);
}

export function answerFieldTable(): string[] {
  return fieldTable(({ answers = [] }) => answers.flatMap(({ schema }) => (schema ? fieldRows(schema) : [])));
}

/** Lists the fields that have a description, each with the operations that use it. */
function fieldTable(rowsOf: (route: Route) => string[][]): string[] {
  const rows = operations.flatMap((route) =>
    rowsOf(route).map(([name, type, , meaning]) => ({ name, type, meaning, route })),
  );
  const byMeaning = Map.groupBy(
    rows.filter(({ meaning }) => meaning !== ''),
    ({ name, type, meaning }) => JSON.stringify([name, type, meaning]),
  );
  return table(
    ['field', 'type', 'of', 'meaning'],
    [...byMeaning].map(([row, found]) => {
      const [name, type, meaning] = JSON.parse(row) as [string, string, string];
      return [name, type, found.map(({ route }) => `\`${route.path}\``).join(', '), meaning];
    }),
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
