import type { Clock } from '../../ports/index.ts';

/** Other nodes deregister a node whose beat has not changed for this long. */
export const endAfterMs = 6_000;
/**
 * A node counts as dead only if the observing node has had this many heartbeats answered in the meantime. Without this
 * rule, a stalled server would make all other nodes look dead.
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
  /** The number of the observing node's heartbeats that the server has answered since then. */
  answered: number;
}

/** Detects nodes whose heartbeats have stopped, according to this node's clock. Starts over on a new connection. */
export class FailureDetector {
  readonly #ownClock: Pick<Clock, 'monotonic'>;
  readonly #seen = new Map<string, Seen>();
  #session = 0;

  constructor(own: Pick<Clock, 'monotonic'>) {
    this.#ownClock = own;
  }

  /** Records the other nodes that a heartbeat returned, and returns those that are dead. */
  observe<Other extends Numbered>(others: readonly Other[], session: number): Other[] {
    if (session !== this.#session) this.#seen.clear();
    this.#session = session;
    for (const id of this.#seen.keys()) if (!others.some((other) => other.id === id)) this.#seen.delete(id);
    return others.filter((other) => this.#isDead(other));
  }

  #isDead({ id, beat }: Numbered): boolean {
    const now = this.#ownClock.monotonic();
    const seen = this.#seen.get(id);
    if (seen?.beat !== beat) {
      this.#seen.set(id, { beat, since: now, answered: 0 });
      return false;
    }
    seen.answered += 1;
    return now - seen.since >= endAfterMs && seen.answered >= beatsToSee;
  }
}
