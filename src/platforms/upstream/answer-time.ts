/** What is slower than this is not well, and no reason to give up on calls that could still be in time. */
const maxMs = 1_000;

/** How long the platform takes to answer, so that nearly every answer is there by then: as TCP judges it (RFC 6298). */
export class AnswerTime {
  #smoothedMs: number | undefined;
  #variationMs = 0;

  note(ms: number): void {
    if (this.#smoothedMs === undefined) {
      this.#smoothedMs = ms;
      this.#variationMs = ms / 2;
      return;
    }
    this.#variationMs += (Math.abs(this.#smoothedMs - ms) - this.#variationMs) / 4;
    this.#smoothedMs += (ms - this.#smoothedMs) / 8;
  }

  /** In milliseconds, at most a second; 0 before the first answer. */
  get ms(): number {
    const smoothedMs = this.#smoothedMs ?? 0;
    return Math.min(maxMs, smoothedMs + Math.max(4 * this.#variationMs, smoothedMs / 4));
  }
}
