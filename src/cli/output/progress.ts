import { systemClock } from '../../base/clock.ts';
import type { TerminalLine } from './terminal-line.ts';

const width = 24;

/** Shows on the terminal's line how far a long command has got. */
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

  /** Clears the line. */
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
