/** What a line of the log tells to last until it is mended, by its field `problem`. Every other line tells of one moment. */
export type Lasting = 'configuration' | 'credential' | 'group' | 'simulated keys' | 'plain http' | 'paused key';

interface Problem {
  at: string;
  message: string;
  lasting: Lasting | undefined;
  keyId: string | undefined;
}

/** The last few different warnings and errors of the log, for `rankd status`. A problem that comes again replaces its earlier line. */
export class RecentProblems {
  #kept: Problem[] = [];

  /** Takes a line of the log, as JSON. */
  note(line: string): void {
    if (!/^\{"level":"(warn|error|fatal)"/.test(line)) return;
    const problem = problemOf(JSON.parse(line));
    const others = this.#kept.filter(({ message }) => message !== problem.message);
    this.#kept = [problem, ...others].slice(0, maxKept);
  }

  /** The keys that a problem is about. */
  get keyIds(): string[] {
    return this.#kept.flatMap(({ keyId, lasting }) => (keyId !== undefined && lasting === 'paused key' ? [keyId] : []));
  }

  /**
   * Without what is over: `lasts` says what still holds, for paused keys by their ids, and what was of a moment is shown for a day. `now` is in
   * epoch milliseconds.
   */
  newestFirst(
    { pausedKeys, ...lasts }: Record<Exclude<Lasting, 'paused key'>, boolean> & { pausedKeys: ReadonlySet<string> },
    now: number,
  ): Array<{ at: string; message: string }> {
    const isOver = ({ at, lasting, keyId = '' }: Problem) => {
      if (lasting === undefined) return Date.parse(at) < now - momentKeptMs;
      return lasting === 'paused key' ? !pausedKeys.has(keyId) : !lasts[lasting];
    };
    return this.#kept.filter((problem) => !isOver(problem)).map(({ at, message }) => ({ at, message }));
  }
}

const maxKept = 5;
const momentKeptMs = 86_400_000;

interface LogLine {
  time: string;
  msg: string;
  problem?: Lasting;
  keyId?: string;
  err?: { message?: string };
  method?: string;
  path?: string;
  status?: number;
  code?: string;
  why?: string;
}

function problemOf({ time, msg, problem, keyId, err, method, path, status, code, why }: LogLine): Problem {
  const what = status === undefined ? msg : [method, path, status, code].filter(Boolean).join(' ');
  return { at: time, message: [what, why ?? err?.message].filter(Boolean).join(': '), lasting: problem, keyId };
}
