import { newId } from '../../core/api-key.ts';
import type { BudgetLedger, CallContext, Clock, Reservation, WriteKind } from '../../ports/index.ts';
import type { Gate } from './gate.ts';
import { RateGate } from './rate-gate.ts';
import { SharedGate } from './shared-gate.ts';
import type { ReservedSlot } from './wait-queue.ts';

/**
 * The operations that rankd uses, each with its limit: calls per minute for the owner of a key, over all keys (Open Cloud's
 * OpenAPI document, `x-roblox-rate-limits`). Introspection, the public role list and the look-up of names have no documented limit.
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
  userNames: { name: 'looking user names up', limit: 30 },
};

export type Operation = keyof typeof operations;

export type Gates = Record<Operation, Gate>;

/** Fifty calls a second are ten times what Roblox's budget lets through for long. */
const burstSpacingMs = 20;

/** A gate for each operation: each has a budget of its own. Without a ledger, this process has all of it. */
export function openGates(clock: Clock, ledger?: BudgetLedger): Gates {
  const node = ledger && newId('node');
  const open = (operation: string, { name, limit }: { name: string; limit: number }): Gate =>
    ledger === undefined || node === undefined
      ? new RateGate({ name, limit, burstSpacingMs, clock })
      : new SharedGate({ operation, name, limit, burstSpacingMs, clock, ledger, node });
  const gates = Object.entries(operations).map(
    ([operation, options]) => [operation, open(operation, options)] as const,
  );
  return Object.fromEntries(gates) as Gates;
}

/** The slots reserved for the writes of one change. */
export class WriteReservation implements Reservation {
  readonly #slots: ReadonlyArray<{ gate: Gate; slot: ReservedSlot; isTaken: boolean }>;

  private constructor(slots: ReadonlyArray<{ gate: Gate; slot: ReservedSlot }>) {
    this.#slots = slots.map((one) => ({ ...one, isTaken: false }));
  }

  /**
   * The writes follow one another, and each takes `answerMs`: the first has to start that much earlier for each that comes after it.
   * Throws `platform_busy`, and reserves nothing, if there is not room for all of `kinds`; `platform_unavailable` if there is not time.
   * If slots are scarce, every change reserves them in the same order, one after the other. So no two changes each hold a slot that
   * the other one waits for.
   */
  static async of(
    gates: Gates,
    kinds: WriteKind[],
    { deadlineAt, ...call }: CallContext,
    answerMs: (gate: Gate) => number,
  ): Promise<WriteReservation> {
    let startBy = deadlineAt;
    const inOrder = kinds.map((kind) => gates[kind]).reverse();
    const isOneByOne = inOrder.some(({ isScarce }) => isScarce);
    const asked: Array<Promise<{ gate: Gate; slot: ReservedSlot }>> = [];
    for (const gate of inOrder) {
      startBy -= answerMs(gate);
      const one = slotOf(gate, { ...call, deadlineAt: startBy });
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

  /** The slot for the next write through `gate`; `undefined` if none is left. */
  take(gate: Gate): ReservedSlot | undefined {
    const next = this.#slots.find((each) => each.gate === gate && !each.isTaken);
    if (next !== undefined) next.isTaken = true;
    return next?.slot;
  }

  [Symbol.dispose](): void {
    for (const { gate, slot } of this.#slots) gate.release(slot);
  }
}

async function slotOf(gate: Gate, bounds: Parameters<Gate['reserve']>[0]): Promise<{ gate: Gate; slot: ReservedSlot }> {
  return { gate, slot: await gate.reserve(bounds) };
}

function isRefused(asked: Promise<unknown>): Promise<boolean> {
  return asked.then(
    () => false,
    () => true,
  );
}
