import type { CallContext, Clock, Reservation, WriteKind } from '../../ports/index.ts';
import { RateGate } from './rate-gate.ts';
import type { ReservedSlot } from './wait-queue.ts';

/**
 * The operations that rankd uses, each with its limit: calls per minute for the owner of a key, over all keys (Open Cloud's
 * OpenAPI document, `x-roblox-rate-limits`). Introspection, the public role list and the look-up of names have no documented limit.
 */
const operations = {
  group: { name: 'reading the group', limit: 150 },
  roles: { name: 'reading roles', limit: 300 },
  memberships: { name: 'reading members', limit: 300 },
  assign: { name: 'giving roles', limit: 300 },
  unassign: { name: 'taking roles', limit: 300 },
  introspect: { name: 'checking the key', limit: 60 },
  publicRoles: { name: 'reading the public role list', limit: 60 },
  user: { name: 'reading users', limit: 1000 },
  userNames: { name: 'looking user names up', limit: 30 },
};

export type Operation = keyof typeof operations;

export type Gates = Record<Operation, RateGate>;

/** Fifty calls a second are ten times what Roblox's budget lets through for long. */
const burstSpacingMs = 20;

/** A gate for each operation: each has a budget of its own. */
export function openGates(clock: Clock): Gates {
  const gates = Object.entries(operations).map(
    ([name, options]) => [name, new RateGate({ ...options, burstSpacingMs, clock })] as const,
  );
  return Object.fromEntries(gates) as Gates;
}

/** The slots reserved for the writes of one change. */
export class WriteReservation implements Reservation {
  readonly #slots: Array<{ gate: RateGate; slot: ReservedSlot; isTaken: boolean }> = [];

  /**
   * The writes follow one another, and each takes `answerMs`: the first has to start that much earlier for each that comes after it.
   * Throws `platform_busy`, and reserves nothing, if there is not room for all of `kinds`; `platform_unavailable` if there is not time.
   */
  constructor(
    gates: Gates,
    kinds: WriteKind[],
    { deadlineAt, lane }: Pick<CallContext, 'deadlineAt' | 'lane'>,
    answerMs: (gate: RateGate) => number,
  ) {
    let startBy = deadlineAt;
    try {
      for (const gate of kinds.map((kind) => gates[kind]).reverse()) {
        startBy -= answerMs(gate);
        this.#slots.unshift({ gate, slot: gate.reserve({ deadlineAt: startBy, lane }), isTaken: false });
      }
    } catch (busy) {
      this[Symbol.dispose]();
      throw busy;
    }
  }

  /** The slot for the next write through `gate`; `undefined` if none is left. */
  take(gate: RateGate): ReservedSlot | undefined {
    const next = this.#slots.find((each) => each.gate === gate && !each.isTaken);
    if (next !== undefined) next.isTaken = true;
    return next?.slot;
  }

  [Symbol.dispose](): void {
    for (const { gate, slot } of this.#slots) gate.release(slot);
  }
}
