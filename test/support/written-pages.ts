import { readFileSync } from 'node:fs';
import { routeRuleTable } from '../http/route-rules.ts';
import { commandDetails, commandPages, commandsTable, commonOptions } from './command-reference.ts';
import { metricsTable } from './metrics-table.ts';
import {
  answerFieldTable,
  errorTable,
  exitTable,
  keySettingsTable,
  operationTable,
  requestFieldTable,
  settingsTable,
  webhookSettingsTable,
} from './reference-tables.ts';

/** A part that `npm run docs` writes into a page, between a comment with its name and an `end` comment. */
export interface WrittenPart {
  page: string;
  name: string;
  lines: () => string[];
}

export const writtenParts: readonly WrittenPart[] = [
  { page: 'docs/commands.md', name: 'every command', lines: commandsTable },
  { page: 'docs/commands.md', name: 'every exit code with its errors', lines: exitTable },
  { page: 'docs/commands.md', name: 'the options of every command', lines: commonOptions },
  ...commandPages.map((page) => ({
    page: `docs/commands/${page}.md`,
    name: 'each command',
    lines: () => commandDetails(page),
  })),
  { page: 'docs/settings.md', name: 'every setting with its default', lines: settingsTable },
  { page: 'docs/settings.md', name: 'every setting of a declared key', lines: keySettingsTable },
  { page: 'docs/settings.md', name: 'every setting of a declared webhook', lines: webhookSettingsTable },
  { page: 'docs/api.md', name: 'every operation', lines: operationTable },
  { page: 'docs/api.md', name: 'every field of a request', lines: requestFieldTable },
  { page: 'docs/api.md', name: 'every field of an answer', lines: answerFieldTable },
  { page: 'docs/api.md', name: 'every error code with its status and words', lines: errorTable },
  { page: 'SECURITY.md', name: 'every route by which a key changes a rank, with every rule', lines: routeRuleTable },
  { page: 'docs/metrics.md', name: 'every metric', lines: metricsTable },
];

const root = new URL('../../', import.meta.url);

export function readPage(page: string): string {
  return readFileSync(new URL(page, root), 'utf8');
}

const beginning = (name: string) => `<!-- ${name}: \`npm run docs\` writes this from the code -->\n\n`;
const end = '\n\n<!-- end -->\n';

/** Returns the part's current text in a page; `undefined` if the comments are missing. */
export function partIn(text: string, { name }: WrittenPart): string | undefined {
  const [, rest] = text.split(beginning(name));
  return rest?.split(end, 1)[0];
}

/** Returns a page's text with the part regenerated. Throws if the page lacks the part's comments. */
export function withPart(text: string, part: WrittenPart): string {
  const [before, rest] = text.split(beginning(part.name));
  const endsAt = rest?.indexOf(end) ?? -1;
  if (rest === undefined || endsAt < 0) {
    throw new Error(`${part.page} lacks a line "${beginning(part.name).trim()}", or one "<!-- end -->" after it.`);
  }
  return before + beginning(part.name) + part.lines().join('\n') + rest.slice(endsAt);
}
