import { type Clock, deadlineIn } from '../base/clock.ts';

/** What bounds a platform call: when to give up, and whose turn it uses. */
export interface CallContext {
  signal: AbortSignal;
  /** The moment on `Clock.monotonic()` after which the answer is of no use, in milliseconds. */
  deadlineAt: number;
  /** Calls of one lane are first come, first served; lanes share the platform's budget fairly. */
  lane: string;
  /** What is kept for the writes of this call, where something is. */
  room?: Room;
}

/** Room for writes: each that is sent with it (`CallContext.room`) uses up its share. Dispose it to give back what is left. */
export type Room = Disposable;

/** What bounds the calls of a lane that give up `ms` milliseconds from now. Dispose it to release its timer. */
export function callWithin(clock: Clock, ms: number, lane: string): CallContext & Disposable {
  const { at, ...deadline } = deadlineIn(clock, ms);
  return { ...deadline, deadlineAt: at, lane };
}

/** The call with a share (0..1) of the time it has left, for what it can do without. */
export function withShare(call: CallContext, { clock, share }: { clock: Clock; share: number }): CallContext {
  const now = clock.monotonic();
  return { ...call, deadlineAt: now + (call.deadlineAt - now) * share };
}
