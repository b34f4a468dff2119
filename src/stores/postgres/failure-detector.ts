import type { Clock } from '../../ports/index.ts';

/** How long the number of a node has to stand still before others end it. */
export const endAfterMs = 6_000;
/** This many of its own heartbeats must have been answered in the meantime: a stalled server declares no node dead. */
const beatsToSee = 3;

interface Numbered {
  id: string;
  beat: number;
}

interface Seen {
  beat: number;
  /** When this beat was seen first, on `Clock.monotonic()`, and how many beats of this node were answered since. */
  since: number;
  answered: number;
}

/** Finds nodes whose heartbeats have stopped, by this node's own time and as seen on one connection. */
export class FailureDetector {
  readonly #own: Pick<Clock, 'monotonic'>;
  readonly #seen = new Map<string, Seen>();
  #session = 0;

  constructor(own: Pick<Clock, 'monotonic'>) {
    this.#own = own;
  }

  /** Takes the other nodes as one heartbeat over this connection returned them. Returns those whose numbers have stood still for too long. */
  observe<Other extends Numbered>(others: readonly Other[], session: number): Other[] {
    if (session !== this.#session) this.#seen.clear();
    this.#session = session;
    for (const id of this.#seen.keys()) if (!others.some((other) => other.id === id)) this.#seen.delete(id);
    return others.filter((other) => this.#isOver(other));
  }

  #isOver({ id, beat }: Numbered): boolean {
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
