import { RankdError } from '../base/errors.ts';

/** Where something is wrong. */
export interface Place {
  /** `file:line:col`, the environment variable or the flag; absent where something is missing everywhere. */
  at?: string | undefined;
  /** True where it was typed as a flag. */
  isTyped?: boolean;
  /** The setting, where `at` does not say it already. */
  setting?: string | undefined;
  /** How far into the file, so that its problems come in reading order; absent for what is not in the file. */
  offset?: number | undefined;
  /** Makes that line of the file, with a caret, if it may be shown; absent for what is not in the file. */
  excerpt?: (() => string | undefined) | undefined;
}

/** One thing wrong with the configuration. Never carries a value that may be a secret. */
export interface Problem extends Place {
  text: string;
}

/** One error that lists the problems, those of the file first and in its order; wrong usage where flags alone are wrong. */
export class ConfigError extends RankdError {
  /** Those that are listed, in order, for programs. */
  readonly problems: Array<Pick<Problem, 'at' | 'setting' | 'text'>>;
  /** The message, each problem of the file with its line below it. */
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

/** More than anybody mends before trying again. */
const maxListed = 20;

function distinct(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((problem) => [line(problem), problem])).values()];
}

function line({ at, setting, text }: Problem): string {
  return `${[at, setting].filter((part) => part !== undefined).join(' ')}: ${text}`;
}

/** What was found: numbers and short words as they are, whatever could be a secret only by its kind. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return 'has no value';
  if (Array.isArray(value)) return 'is a list';
  if (typeof value === 'object') return 'is a mapping';
  if (typeof value !== 'string') return `is ${value}`;
  return value.length <= 24 && !/[@/=]/.test(value) ? `is ${JSON.stringify(value)}` : 'is a text';
}
