import { writeFileSync } from 'node:fs';

/** Loaded into a process before anything else: its wall clock is off by as many milliseconds as a file says, which a test writes. */
const preload = `
  import { readFileSync } from 'node:fs';
  const rightNow = Date.now;
  Date.now = () => rightNow() + Number(readFileSync(process.env.TEST_CLOCK_OFFSET, 'utf8'));`;

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
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}`,
      TEST_CLOCK_OFFSET: this.#file,
    };
  }

  /** From now on, the clock is off by so much. */
  step(ms: number): void {
    writeFileSync(this.#file, String(ms));
  }
}
