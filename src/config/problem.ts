import { RankdError } from '../base/errors.ts';

/** Where something is wrong. */
export interface Location {
  /** `file:line:col`, the environment variable or the flag; absent if something is missing everywhere. */
  at?: string | undefined;
  /** True if it was typed as a flag. */
  isTyped?: boolean;
  /** The setting, if `at` does not say it already. */
  setting?: string | undefined;
  /** The offset in the file, which puts its problems in reading order; absent for what is not in the file. */
  offset?: number | undefined;
  /** Returns that line of the file with a caret, if it may be shown; absent for what is not in the file. */
  excerpt?: (() => string | undefined) | undefined;
}

/** One thing that is wrong with the configuration. It never carries a value that may be a secret. */
export interface Problem extends Location {
  text: string;
}

/** One error that lists the problems: those of the file first, in its order. It is `usage` if only flags are wrong. */
export class ConfigError extends RankdError {
  /** The problems that are listed, in order, for programs. */
  readonly problems: Array<Pick<Problem, 'at' | 'setting' | 'text'>>;
  /** The message, with the line of the file below each problem. */
  readonly withExcerpts: string;

  constructor(problems: readonly Problem[], { file }: { file: string | undefined }) {
    const inOrder = distinct(problems).toSorted(
      (a, b) => (a.offset ?? Number.MAX_SAFE_INTEGER) - (b.offset ?? Number.MAX_SAFE_INTEGER),
    );
    const listed = inOrder.slice(0, maxListed);
    const inWords = (lines: string[]) => {
      if (inOrder.length === 1) return lines.join('\n');
      const rest = inOrder.length > maxListed ? [`and ${inOrder.length - maxListed} more`] : [];
      return [`${file ?? 'The configuration'} has ${inOrder.length} problems:`, ...lines, ...rest].join('\n');
    };
    super(inOrder.every(({ isTyped }) => isTyped) ? 'usage' : 'config_invalid', inWords(listed.map(line)), {
      hint: 'correct what is listed, then run the command again',
    });
    this.problems = listed.map(({ at, setting, text }) => ({ at, setting, text }));
    this.withExcerpts = inWords(
      listed.map((problem) => [line(problem), problem.excerpt?.()].filter(Boolean).join('\n')),
    );
  }
}

/** More than anybody fixes before trying again. */
const maxListed = 20;

function distinct(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((problem) => [line(problem), problem])).values()];
}

function line({ at, setting, text }: Problem): string {
  return `${[at, setting].filter((part) => part !== undefined).join(' ')}: ${text}`;
}

/** What was found. Numbers and short words are shown; of what could be a secret, only the kind. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return 'has no value';
  if (Array.isArray(value)) return 'is a list';
  if (typeof value === 'object') return 'is a mapping';
  if (typeof value !== 'string') return `is ${value}`;
  return value.length <= 24 && !/[@/=]/.test(value) ? `is ${JSON.stringify(value)}` : 'is a text';
}

/**
 * The line of the file that a problem is in, with a caret below it. It shows names, and at that point short plain
 * words (`isKnown`: a setting or its value). Everything else may be a secret. `undefined` if nothing is left to show.
 */
export function excerpt(
  lineText: string,
  { line, col, isKnown }: { line: number; col: number; isKnown: boolean },
): string | undefined {
  const before = lineText.slice(0, col - 1).replaceAll('\t', ' ');
  const lead = /^[\s-]*(\w+:\s+)*$/.test(before) ? before : `${/^\s*/.exec(before)?.[0]}… `;
  const word = (isKnown && plainWord.exec(lineText.slice(col - 1))?.[0]) || '…';
  if (!/\w/.test(lead + word)) return undefined;
  const number = String(line).padStart(5);
  return `${number} | ${lead}${word}\n${' '.repeat(number.length)} | ${' '.repeat(lead.length)}${'^'.repeat(word.length)}`;
}

const plainWord = /^([\w.-]{1,24}|"[\w.: -]{1,24}"|'[\w.: -]{1,24}')(?=[\s:,\]}]|$)/;
