import { newId } from '../../core/api-key.ts';
import type { BudgetLedger, CallContext, Clock, Reservation, WriteKind } from '../../ports/index.ts';
import { Gate } from './gate.ts';
import type { ReservedSlot } from './wait-queue.ts';

/**
 * The operations that rankd uses, each with its limit in calls per minute. Roblox counts the calls of a key's owner
 * across all of the owner's keys (source: `x-roblox-rate-limits` in Open Cloud's OpenAPI document). The limits of
 * introspection and of calls without a key are not documented, so rankd sets its own.
 */
const operations = {
  group: { name: 'reading the group', limit: 150 },
  roles: { name: 'reading roles', limit: 300 },
  role: { name: 'reading one role', limit: 300 },
  memberships: { name: 'reading members', limit: 300 },
  assign: { name: 'giving roles', limit: 300 },
  unassign: { name: 'taking roles', limit: 300 },
  introspect: { name: 'checking the key', limit: 60 },
  publicRoles: { name: 'reading the public role list', limit: 60 },
  user: { name: 'reading users', limit: 1000 },
  userNames: { name: 'looking up user names', limit: 30 },
  places: { name: 'reading the places of an experience', limit: 30 },
};

export type Operation = keyof typeof operations;

export type Gates = Record<Operation, Gate>;

/** Fifty calls a second, ten times the rate that a limit of 300 calls a minute allows on average. */
const burstSpacingMs = 20;

/** Creates a gate for each operation, because Roblox limits each one separately. */
export function openGates(clock: Clock, ledger?: BudgetLedger): Gates {
  const node = newId('node');
  const gates = Object.entries(operations).map(
    ([operation, { name, limit }]) =>
      [operation, new Gate({ operation, name, limit, burstSpacingMs, clock, ledger, node })] as const,
  );
  return Object.fromEntries(gates) as Gates;
}

export class WriteReservation implements Reservation {
  readonly #slots: ReadonlyArray<{ gate: Gate; slot: ReservedSlot; isTaken: boolean }>;

  private constructor(slots: ReadonlyArray<{ gate: Gate; slot: ReservedSlot }>) {
    this.#slots = slots.map((one) => ({ ...one, isTaken: false }));
  }

  /**
   * Reserves a slot for each of `kinds`. The writes run one after another, and each takes about `answerMs`, so each
   * slot's deadline leaves time for its own write and those that follow. Reserves nothing and throws `platform_busy` if
   * the slots do not all become free in time, or `platform_unavailable` if no time is left. If slots are scarce, every
   * change reserves its slots one at a time in the same order, so that no two changes each hold a slot that the other
   * is waiting for.
   */
  static async of(
    gates: Gates,
    kinds: WriteKind[],
    { deadlineAt, ...call }: CallContext,
    answerMs: (gate: Gate) => number,
  ): Promise<WriteReservation> {
    let startBy = deadlineAt;
    const bounds = kinds.toReversed().map((kind) => {
      startBy -= answerMs(gates[kind]);
      return { gate: gates[kind], deadlineAt: startBy };
    });
    for (const { gate, deadlineAt } of bounds) gate.refuseIfLate({ deadlineAt });
    const isOneByOne = bounds.some(({ gate }) => gate.isScarce);
    const asked: Array<Promise<{ gate: Gate; slot: ReservedSlot }>> = [];
    for (const { gate, deadlineAt } of bounds) {
      const one = gate.reserve({ ...call, deadlineAt }).then((slot) => ({ gate, slot }));
      asked.push(one);
      if (isOneByOne && (await isRefused(one))) break;
    }
    const answers = await Promise.allSettled(asked);
    const slots = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    const reservation = new WriteReservation(slots.reverse());
    const refusal = answers.find((answer) => answer.status === 'rejected');
    if (refusal === undefined) return reservation;
    reservation[Symbol.dispose]();
    throw refusal.reason;
  }

  take(gate: Gate): ReservedSlot | undefined {
    const next = this.#slots.find((each) => each.gate === gate && !each.isTaken);
    if (next !== undefined) next.isTaken = true;
    return next?.slot;
  }

  [Symbol.dispose](): void {
    for (const { gate, slot } of this.#slots) gate.release(slot);
  }
}

function isRefused(asked: Promise<unknown>): Promise<boolean> {
  return asked.then(
    () => false,
    () => true,
  );
}
