import { systemClock } from '../../base/clock.ts';
import { localTime } from '../../base/time.ts';
import type { GlobalOptions, Io } from '../io.ts';

const eraseLine = '\r\u001b[K';

/**
 * A progress line below the output, which is cleared before anything else is printed. It appears only on a terminal,
 * and not with -q or --json.
 */
export class TerminalLine {
  readonly #io: Pick<Io, 'stderr' | 'showsProgress' | 'env'>;
  readonly #options: () => GlobalOptions;
  #isShown = false;
  #holders = 0;

  constructor(io: Pick<Io, 'stderr' | 'showsProgress' | 'env'>, options: () => GlobalOptions) {
    this.#io = io;
    this.#options = options;
  }

  /** True while a question or a progress bar uses the terminal. */
  get isHeld(): boolean {
    return this.#holders > 0;
  }

  show(text: string): void {
    const { quiet, json } = this.#options();
    const { showsProgress, env } = this.#io;
    if (!showsProgress || quiet || json || env['TERM'] === 'dumb') return;
    this.#io.stderr(eraseLine + text);
    this.#isShown = true;
  }

  clear(): void {
    if (this.#isShown) this.#io.stderr(eraseLine);
    this.#isShown = false;
  }

  /** Reserves the line for the caller, until the caller disposes the returned object. */
  hold(): Disposable {
    this.clear();
    this.#holders += 1;
    return {
      [Symbol.dispose]: () => {
        this.clear();
        this.#holders -= 1;
      },
    };
  }
}

const everyMs = 1_000;

/** Runs `work`. Every second, shows `what` and the elapsed time on the line. */
export async function whileWaiting<T>(line: TerminalLine, what: string, work: () => Promise<T>): Promise<T> {
  const done = new AbortController();
  const startedAt = systemClock.monotonic();
  const showProgress = async () => {
    for (;;) {
      await systemClock.sleep(everyMs, done.signal);
      const seconds = Math.round((systemClock.monotonic() - startedAt) / 1000);
      if (!line.isHeld) line.show(`${what}, ${seconds} s`);
    }
  };
  showProgress().catch(() => undefined); // rejects when `done` is aborted
  try {
    return await work();
  } finally {
    done.abort();
    line.clear();
  }
}

/** Runs `work`, which prints results one by one. Shows progress only if the results do not go to the terminal. */
export function whileStreaming<T>(
  { io, line }: { io: Pick<Io, 'stdoutIsTerminal'>; line: TerminalLine },
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  return io.stdoutIsTerminal ? work() : whileWaiting(line, what, work);
}

/** Shows the line before `work` begins, because `work` blocks timers. */
export async function whileWorking<T>(line: TerminalLine, what: string, work: () => T | Promise<T>): Promise<T> {
  line.show(`${what} …`);
  try {
    return await work();
  } finally {
    line.clear();
  }
}

const width = 24;

export class Progress implements Disposable {
  readonly #line: TerminalLine;
  readonly #held: Disposable;
  readonly #total: number;
  readonly #startedAt = systemClock.monotonic();

  constructor(line: TerminalLine, total: number) {
    this.#line = line;
    this.#held = line.hold();
    this.#total = total;
    this.show(0);
  }

  show(done: number): void {
    const filled = Math.floor((width * done) / this.#total);
    const bar = '#'.repeat(filled) + '-'.repeat(width - filled);
    this.#line.show(`[${bar}] ${done}/${this.#total}${this.#timeLeft(done)}`);
  }

  [Symbol.dispose](): void {
    this.#held[Symbol.dispose]();
  }

  #timeLeft(done: number): string {
    if (done === 0 || done === this.#total) return '';
    const leftMs = ((systemClock.monotonic() - this.#startedAt) / done) * (this.#total - done);
    const seconds = Math.ceil(leftMs / 1000);
    return seconds < 90 ? `, about ${seconds} s left` : `, about ${Math.ceil(seconds / 60)} min left`;
  }
}

/** Switches to the alternate screen, hides the cursor, and turns line wrapping off. */
const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const leave = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const home = '\u001b[H';
const eraseToEndOfLine = '\u001b[K';
const eraseBelow = '\u001b[J';

/**
 * Shows output on the terminal's alternate screen, where it is refreshed and truncated to fit. Disposing this object
 * restores the previous content.
 */
export class WatchScreen implements Disposable {
  readonly #io: Pick<Io, 'stdout' | 'screenSize'>;

  constructor(io: Pick<Io, 'stdout' | 'screenSize'>) {
    this.#io = io;
    io.stdout(enter);
  }

  show(text: string): void {
    const lines = text.split('\n');
    const room = (this.#io.screenSize?.rows ?? lines.length + 1) - 1;
    const left = lines.length - room;
    const shown = left > 0 ? [...lines.slice(0, room - 1), `… ${left + 1} more lines`] : lines;
    const all = [...shown, `as of ${localTime(systemClock.now())}, press Ctrl-C to stop`];
    this.#io.stdout(`${home}${all.map((line) => line + eraseToEndOfLine).join('\n')}${eraseBelow}`);
  }

  [Symbol.dispose](): void {
    this.#io.stdout(leave);
  }
}
