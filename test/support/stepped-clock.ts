import { writeFileSync } from 'node:fs';

/** Preloaded into a process: shifts its wall clock by the milliseconds in a file, which a test writes. */
const preload = `
  import { readFileSync } from 'node:fs';
  const rightNow = Date.now;
  Date.now = () => rightNow() + Number(readFileSync(process.env.TEST_CLOCK_OFFSET, 'utf8'));`;

const fast = new URL('fast-clock-preload.ts', import.meta.url);

/** The wall clock of processes started with its `env`. Their timers and monotonic clock are real, or four times as fast. */
export class SteppedClock {
  readonly #file: string;
  readonly #imports: string;

  /** `file`: stores the offset. */
  constructor(file: string, { offsetMs = 0, isFast = false } = {}) {
    this.#file = file;
    this.#imports = `--import=data:text/javascript,${encodeURIComponent(preload)}${isFast ? ` --import=${fast}` : ''}`;
    this.step(offsetMs);
  }

  get env(): Record<string, string> {
    return {
      NODE_OPTIONS: this.#imports,
      TEST_CLOCK_OFFSET: this.#file,
    };
  }

  /** Sets the clock's offset from now on. */
  step(ms: number): void {
    writeFileSync(this.#file, String(ms));
  }
}
