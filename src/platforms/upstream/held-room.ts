import type { CallContext, Room } from '../../ports/index.ts';
import type { Place } from './line.ts';
import type { RateGate } from './rate-gate.ts';

/** The turns that the gates have promised to the writes of one change. */
export class HeldRoom implements Room {
  readonly #turns: Array<{ gate: RateGate; place: Place; isTaken: boolean }> = [];

  /** Throws `platform_busy` where the gate can't promise another turn. */
  hold(gate: RateGate, call: Pick<CallContext, 'deadlineAt' | 'lane'>): void {
    this.#turns.push({ gate, place: gate.promise(call), isTaken: false });
  }

  /** The turn of the next write; `undefined` where all of them are taken. */
  take(gate: RateGate): Place | undefined {
    const turn = this.#turns.find((each) => each.gate === gate && !each.isTaken);
    if (turn !== undefined) turn.isTaken = true;
    return turn?.place;
  }

  [Symbol.dispose](): void {
    for (const { gate, place } of this.#turns) gate.giveBack(place);
  }
}
