import type { Io } from '../io.ts';
import type { GlobalOptions } from '../options.ts';

const eraseLine = '\r\u001b[K';

/**
 * One line below the output that is written over while something takes its time. Only where a person sees it: silent off a
 * terminal, with -q and with --json. It has no colors, whatever NO_COLOR says.
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

  /** True while somebody else writes there: a question, a bar. */
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

  /** Makes room for other output. */
  clear(): void {
    if (this.#isShown) this.#io.stderr(eraseLine);
    this.#isShown = false;
  }

  /** Keeps others from writing there until it is disposed. */
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
