import { RankdError } from '../../base/errors.ts';
import { idempotencyWindowMs, type RankChange } from '../../core/model.ts';
import type { ChangeCommand, Idempotency } from './change-command.ts';
import type { Ranking } from './ranking.ts';

type Keyed = Pick<ChangeCommand, 'caller' | 'idempotency'>;

/** Throws if a request with this command's idempotency key is still running. */
export function refuseWhileRunning(app: Ranking, { caller, idempotency }: Keyed): void {
  if (idempotency === undefined || caller.keyId === undefined) return;
  const running = app.activeIdempotencyKeys.get(slot(caller.keyId, idempotency));
  if (running !== undefined) throw inProgressOrMismatch(running, idempotency);
}

/** The change that this request's idempotency key already stands for. Throws if the key stands for another request, or for one that is not finished. */
export async function earlierAnswer(app: Ranking, { caller, idempotency }: Keyed): Promise<RankChange | undefined> {
  if (idempotency === undefined || caller.keyId === undefined) return undefined;
  const earlier = await app.store.findChangeByIdempotencyKey({
    keyId: caller.keyId,
    idempotencyKey: idempotency.key,
    group: app.group.title,
    since: app.clock.now() - idempotencyWindowMs,
  });
  if (earlier === undefined) return undefined;
  if (earlier.fingerprint !== idempotency.fingerprint || earlier.state === 'pending') {
    throw inProgressOrMismatch(earlier.fingerprint, idempotency);
  }
  return earlier;
}

/** Runs `work` with the command's idempotency key marked as running. */
export async function whileRunning<T>(app: Ranking, command: Keyed, work: () => Promise<T>): Promise<T> {
  const { caller, idempotency } = command;
  if (idempotency === undefined || caller.keyId === undefined) return work();
  refuseWhileRunning(app, command); // another may have begun while the store was asked
  const mine = slot(caller.keyId, idempotency);
  app.activeIdempotencyKeys.set(mine, idempotency.fingerprint);
  try {
    return await work();
  } finally {
    app.activeIdempotencyKeys.delete(mine);
  }
}

function inProgressOrMismatch(known: string | undefined, { fingerprint }: Idempotency): RankdError {
  return known === fingerprint
    ? new RankdError(
        'idempotency_in_progress',
        'The first request with this Idempotency-Key is still running; ask again.',
        {
          retryAfterMs: 1_000,
        },
      )
    : new RankdError(
        'idempotency_mismatch',
        'This Idempotency-Key was already used for another change; use a new one.',
      );
}

function slot(keyId: string, { key }: Idempotency): string {
  return `${keyId} ${key}`;
}
