import { systemClock } from '../clock.ts';
import type { Cli } from './cli.ts';

const width = 24;

/** How far a long command has got: one line of a terminal that is written over. Silent elsewhere, with -q and with --json. */
export class Progress implements Disposable {
  readonly #cli: Cli;
  readonly #total: number;
  readonly #startedAt = systemClock.monotonic();

  constructor(cli: Cli, total: number) {
    this.#cli = cli;
    this.#total = total;
    this.show(0);
  }

  show(done: number): void {
    const filled = Math.floor((width * done) / this.#total);
    const bar = '#'.repeat(filled) + '-'.repeat(width - filled);
    this.#write(`[${bar}] ${done}/${this.#total}${this.#timeLeft(done)}`);
  }

  /** Clears the line. */
  [Symbol.dispose](): void {
    this.#write('');
  }

  #write(line: string): void {
    const { io, options } = this.#cli;
    if (io.showsProgress && !options.quiet && !options.json) io.stderr(`\r\u001b[K${line}`);
  }

  #timeLeft(done: number): string {
    if (done === 0 || done === this.#total) return '';
    const leftMs = ((systemClock.monotonic() - this.#startedAt) / done) * (this.#total - done);
    const seconds = Math.ceil(leftMs / 1000);
    return seconds < 90 ? `, about ${seconds} s left` : `, about ${Math.ceil(seconds / 60)} min left`;
  }
}
