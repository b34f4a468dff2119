import type { RankdError } from '../../base/errors.ts';
import type { CallContext } from '../../ports/index.ts';
import type { Waiter } from './line.ts';

/** What becomes of a call that waits, besides that its turn settles. */
interface WaiterEvents {
  granted(): void;
  refused(): void;
  /** Its signal was aborted: takes it out of the line, and says how it is refused. */
  calledOff(waiter: Waiter): RankdError;
}

/** A call that waits, until it is granted, refused or called off; `turn` resolves or rejects with that. */
export function waiterFor(
  { deadlineAt, signal }: Pick<CallContext, 'deadlineAt' | 'signal'>,
  isHeavy: boolean,
  { granted, refused, calledOff }: WaiterEvents,
): { waiter: Waiter; turn: Promise<void> } {
  const { promise: turn, resolve, reject } = Promise.withResolvers<void>();
  const waiter: Waiter = {
    deadlineAt,
    isHeavy,
    grant() {
      signal.removeEventListener('abort', onAbort);
      granted();
      resolve();
    },
    refuse(error) {
      signal.removeEventListener('abort', onAbort);
      refused();
      reject(error);
    },
  };
  const onAbort = () => waiter.refuse(calledOff(waiter));
  signal.addEventListener('abort', onAbort, { once: true });
  return { waiter, turn };
}
