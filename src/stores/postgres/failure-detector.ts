import type { Clock } from '../../ports/index.ts';

/** Other nodes end a node whose beat has not changed for this long. */
export const endAfterMs = 6_000;
/**
 * A node counts as dead only if the server has answered this many of the observing node's heartbeats in the meantime.
 * Otherwise, a stalled server would make the other nodes look dead.
 */
const beatsToSee = 3;

interface Numbered {
  id: string;
  beat: number;
}

interface Seen {
  beat: number;
  /** The time on `Clock.monotonic()` when this beat was first seen. */
  since: number;
  /** The number of the observing node's heartbeats that were answered since then. */
  answered: number;
}

/** Detects nodes whose heartbeats have stopped, by this node's clock. A new connection restarts the observation. */
export class FailureDetector {
  readonly #own: Pick<Clock, 'monotonic'>;
  readonly #seen = new Map<string, Seen>();
  #session = 0;

  constructor(own: Pick<Clock, 'monotonic'>) {
    this.#own = own;
  }

  /** Records the other nodes that a heartbeat returned. Returns those whose beats have not changed for too long. */
  observe<Other extends Numbered>(others: readonly Other[], session: number): Other[] {
    if (session !== this.#session) this.#seen.clear();
    this.#session = session;
    for (const id of this.#seen.keys()) if (!others.some((other) => other.id === id)) this.#seen.delete(id);
    return others.filter((other) => this.#isDead(other));
  }

  #isDead({ id, beat }: Numbered): boolean {
    const now = this.#own.monotonic();
    const seen = this.#seen.get(id);
    if (seen?.beat !== beat) {
      this.#seen.set(id, { beat, since: now, answered: 0 });
      return false;
    }
    seen.answered += 1;
    return now - seen.since >= endAfterMs && seen.answered >= beatsToSee;
  }
}
