import { writeFileSync } from 'node:fs';

/** The wall clock of processes that are started with its `env`. Their monotonic clock goes on as ever. */
export class SteppedClock {
  readonly #file: string;

  /** `file`: where it is kept how far it is off. */
  constructor(file: string, { offsetMs } = { offsetMs: 0 }) {
    this.#file = file;
    this.step(offsetMs);
  }

  get env(): Record<string, string> {
    return {
      NODE_OPTIONS: `--import ${new URL('stepped-clock-preload.ts', import.meta.url)}`,
      TEST_CLOCK_OFFSET: this.#file,
    };
  }

  /** From now on, the clock is off by so much. */
  step(ms: number): void {
    writeFileSync(this.#file, String(ms));
  }
}
