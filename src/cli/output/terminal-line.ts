import type { Io } from '../io.ts';
import type { GlobalOptions } from '../options.ts';

const eraseLine = '\r\u001b[K';

/**
 * One line below the output that is overwritten while something takes its time. Only a person sees it: it is silent off a
 * terminal, with -q and with --json.
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

  /** True while something else, such as a question or a progress bar, writes there. */
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

  /** Clears the line for other output. */
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
