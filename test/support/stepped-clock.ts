import { writeFileSync } from 'node:fs';

/** When preloaded, shifts the process's wall clock by the milliseconds in a file that a test writes. */
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

  /** Sets the clock's offset in milliseconds. */
  step(ms: number): void {
    writeFileSync(this.#file, String(ms));
  }
}
