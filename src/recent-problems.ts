/** The last few warnings and errors of the log, for whoever asks how the daemon is. */
export class RecentProblems {
  readonly #kept: Array<{ at: string; message: string }> = [];

  /** Takes a line of the log, as JSON. */
  note(line: string): void {
    if (!/^\{"level":"(warn|error|fatal)"/.test(line)) return;
    this.#kept.unshift(problemOf(JSON.parse(line)));
    this.#kept.length = Math.min(this.#kept.length, mostKept);
  }

  newestFirst(): Array<{ at: string; message: string }> {
    return [...this.#kept];
  }
}

const mostKept = 5;

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
