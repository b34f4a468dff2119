import { writeFileSync } from 'node:fs';

/** Preloaded by a process: shifts its `Date.now` by the number of milliseconds in a file, which the test writes. */
const preload = `
  import { readFileSync } from 'node:fs';
  const rightNow = Date.now;
  Date.now = () => rightNow() + Number(readFileSync(process.env.TEST_CLOCK_OFFSET, 'utf8'));`;

/** Sets the wall clock of processes that are started with `env`, but not their monotonic clock. */
export class SteppedClock {
  readonly #file: string;

  constructor(file: string, { offsetMs } = { offsetMs: 0 }) {
    this.#file = file;
    this.step(offsetMs);
  }

  get env(): Record<string, string> {
    return {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}`,
      TEST_CLOCK_OFFSET: this.#file,
    };
  }

  /** Sets the offset from real time, regardless of the previous offset. */
  step(ms: number): void {
    writeFileSync(this.#file, String(ms));
  }
}
