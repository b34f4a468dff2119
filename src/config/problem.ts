import type { YAMLError } from 'yaml';
import { RankdError } from '../base/errors.ts';

export interface Location {
  /** `file:line:col`, the variable or the flag; absent if the setting is missing everywhere. */
  at?: string | undefined;
  /** True if the problem is in a flag. */
  isTyped?: boolean;
  /** Absent if `at` already names the setting. */
  setting?: string | undefined;
  /** The offset in the file, by which problems are sorted; absent for other sources. */
  offset?: number | undefined;
  /** Returns the line with a caret below the problem, without secrets; absent if the problem is not in the file. */
  excerpt?: (() => string | undefined) | undefined;
}

/** Formats a path as in `group.ladder[2]`. */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((segment) => (typeof segment === 'number' ? `[${segment}]` : `.${printable(String(segment))}`))
    .join('')
    .slice(1);
}

/** Hides a long or unusual name, which may be a misplaced secret or contain terminal control characters. */
function printable(name: string): string {
  return /^[\w <-]{1,32}$/.test(name) ? name : '(not a valid name)';
}

/** A mistake in the configuration. It never contains a value that may be a secret. */
export interface Problem extends Location {
  text: string;
}

/**
 * Lists at most `maxListed` problems: first those in the file, from top to bottom. The code is `usage` if only flags
 * are wrong.
 */
export class ConfigError extends RankdError {
  readonly problems: Array<Pick<Problem, 'at' | 'setting' | 'text'>>;
  /** The message, with the file's line below each problem. */
  readonly withExcerpts: string;

  constructor(problems: readonly Problem[], { file }: { file: string | undefined }) {
    const inOrder = distinct(problems).toSorted(
      (a, b) => (a.offset ?? Number.MAX_SAFE_INTEGER) - (b.offset ?? Number.MAX_SAFE_INTEGER),
    );
    const listed = inOrder.slice(0, maxListed);
    const isTyped = inOrder.every((problem) => problem.isTyped);
    const isInFile = file !== undefined && inOrder.every(({ at }) => at?.startsWith(file));
    const subject = isInFile ? file : `The ${isTyped ? 'command line' : 'configuration'}`;
    const summarize = (lines: string[]) => {
      if (inOrder.length === 1) return lines.join('\n');
      const rest = inOrder.length > maxListed ? [`and ${inOrder.length - maxListed} more`] : [];
      return [`${subject} has ${inOrder.length} problems:`, ...lines, ...rest].join('\n');
    };
    super(isTyped ? 'usage' : 'config_invalid', summarize(listed.map(line)), {
      hint: `correct ${inOrder.length === 1 ? 'this' : 'the listed problems'}, then try again`,
    });
    this.problems = listed.map(({ at, setting, text }) => ({ at, setting, text }));
    this.withExcerpts = summarize(
      listed.map((problem) => [line(problem), problem.excerpt?.()].filter(Boolean).join('\n')),
    );
  }
}

const maxListed = 20;

function distinct(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((problem) => [line(problem), problem])).values()];
}

function line({ at, setting, text }: Problem): string {
  return `${[at, setting].filter((part) => part !== undefined).join(' ')}: ${text}`;
}

export const inQuotes = 'is in quotes; remove them';

/** Avoids the parser's message, which can quote a secret. */
export function describeFlaw({ code }: YAMLError): string {
  return flawTexts[code] ?? `invalid YAML (${code.toLowerCase().replaceAll('_', ' ')})`;
}

const flawTexts: Partial<Record<YAMLError['code'], string>> = {
  BAD_DQ_ESCAPE: 'invalid YAML: a backslash in double quotes has a special meaning; use single quotes',
  BAD_INDENT: 'invalid YAML: the indentation differs from the lines around it, or a bracket above is still open',
  BAD_SCALAR_START: 'invalid YAML: a value cannot start with this character; put the value in quotes',
  BLOCK_AS_IMPLICIT_KEY:
    'invalid YAML: a line below this value is indented too far, or a second name: is on the same line',
  MISSING_CHAR: 'invalid YAML: a character is missing here, such as a colon, a comma, a quote or a bracket',
  MULTILINE_IMPLICIT_KEY: 'invalid YAML: a colon is missing here, or a line below is indented too far',
  MULTIPLE_DOCS: 'a second document (---) starts here; only one is allowed',
  TAB_AS_INDENT: 'invalid YAML: indented with a tab; use spaces',
  TAG_RESOLVE_FAILED:
    'a tag (!name), which rankd does not support; remove it, or put a value that starts with ! in quotes',
  UNEXPECTED_TOKEN: 'invalid YAML: unexpected text here',
};
