/** What a line of the log tells to last until it is mended, by its field `problem`. Every other line tells of one moment. */
export type Lasting = 'configuration' | 'credential' | 'group' | 'simulated keys' | 'plain http';

interface Problem {
  at: string;
  message: string;
  lasting: Lasting | undefined;
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

  /** Without what is over: `isLasting` says what still holds, and what was of a moment is told for a day. `now` is in epoch milliseconds. */
  newestFirst(isLasting: Record<Lasting, boolean>, now: number): Array<{ at: string; message: string }> {
    const isOver = ({ at, lasting }: Problem) =>
      lasting === undefined ? Date.parse(at) < now - momentKeptMs : !isLasting[lasting];
    return this.#kept.filter((problem) => !isOver(problem)).map(({ at, message }) => ({ at, message }));
  }
}

const maxKept = 5;
const momentKeptMs = 86_400_000;

interface LogLine {
  time: string;
  msg: string;
  problem?: Lasting;
  err?: { message?: string };
  method?: string;
  path?: string;
  status?: number;
  code?: string;
  why?: string;
}

function problemOf({ time, msg, problem, err, method, path, status, code, why }: LogLine): Problem {
  const what = status === undefined ? msg : [method, path, status, code].filter(Boolean).join(' ');
  return { at: time, message: [what, why ?? err?.message].filter(Boolean).join(': '), lasting: problem };
}
