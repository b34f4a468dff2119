import { type Clock, deadlineIn } from '../base/clock.ts';

/** The bounds of a platform call: when it gives up, and on whose behalf it spends the platform's budget. */
export interface CallContext {
  signal: AbortSignal;
  /** The answer is of no use after this moment (milliseconds on `Clock.monotonic()`). */
  deadlineAt: number;
  /** Calls of one lane are first come, first served. Lanes share the platform's budget fairly. */
  lane: string;
  /** The room in the budget that was reserved for the writes of this call. */
  reservation?: Reservation;
  /** Called before each try of a write. If it rejects, the write is not sent, and fails with that error. */
  fence?: () => Promise<WriteLease>;
  /** True for a write after which the member is read if it is refused: one that is refused for want of room leaves time for that. */
  looksAfter?: boolean;
}

/** For how long a write may be handed over. */
export interface WriteLease {
  /** How much longer, in milliseconds; `Infinity` if nobody else takes over. It is looked at in the moment in which the write is handed over. */
  leftMs(): number;
  /** The write may have been handed over after it had run out. */
  noteLate(): void;
}

/** The lease of a write for which nobody else takes over. */
export const unboundedLease: WriteLease = { leftMs: () => Number.POSITIVE_INFINITY, noteLate: () => undefined };

/** Room in the platform's budget for a number of writes. Each write sent with it uses up its part. Dispose it to release the rest. */
export type Reservation = Disposable;

/** The bounds of calls that give up `ms` milliseconds from now. Dispose it to release its timer. */
export function callWithin(clock: Clock, ms: number, lane: string): CallContext & Disposable {
  const { at, ...deadline } = deadlineIn(clock, ms);
  return { ...deadline, deadlineAt: at, lane };
}

/** The same call with only a share (0..1) of the time it has left: for something that the caller can do without. */
export function withShare(call: CallContext, { clock, share }: { clock: Clock; share: number }): CallContext {
  const now = clock.monotonic();
  return { ...call, deadlineAt: now + (call.deadlineAt - now) * share };
}
