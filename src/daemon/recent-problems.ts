/** The last few different warnings and errors of the log, for `rankd status`. A problem that comes again replaces its earlier line. */
export class RecentProblems {
  #kept: Array<{ at: string; message: string }> = [];

  /** Takes a line of the log, as JSON. */
  note(line: string): void {
    if (!/^\{"level":"(warn|error|fatal)"/.test(line)) return;
    const problem = problemOf(JSON.parse(line));
    const others = this.#kept.filter(({ message }) => message !== problem.message);
    this.#kept = [problem, ...others].slice(0, maxKept);
  }

  newestFirst(): Array<{ at: string; message: string }> {
    return [...this.#kept];
  }
}

const maxKept = 5;

interface LogLine {
  time: string;
  msg: string;
  err?: { message?: string };
  method?: string;
  path?: string;
  status?: number;
  code?: string;
  why?: string;
}

function problemOf({ time, msg, err, method, path, status, code, why }: LogLine): { at: string; message: string } {
  const what = status === undefined ? msg : [method, path, status, code].filter(Boolean).join(' ');
  return { at: time, message: [what, why ?? err?.message].filter(Boolean).join(': ') };
}
