import { idempotencyWindowMs, type RankChange } from '../core/model.ts';
import { RankdError } from '../errors.ts';
import type { ChangeOrder } from './change-record.ts';
import type { Ranking } from './ranking.ts';

/** The caller's `Idempotency-Key`, and the SHA-256 (hex) of the request it came with. */
export interface Idempotency {
  key: string;
  fingerprint: string;
}

/** Throws where a request with this order's idempotency key is being worked on. */
export function refuseWhileRunning(app: Ranking, { caller, idempotency }: ChangeOrder): void {
  if (idempotency === undefined || caller.keyId === undefined) return;
  const running = app.running.get(slot(caller.keyId, idempotency));
  if (running !== undefined) throw inProgressOrMismatch(running, idempotency);
}

/** The change that this request's idempotency key already stands for. Throws where it stands for another or an unfinished one. */
export async function earlierAnswer(
  app: Ranking,
  { caller, idempotency }: ChangeOrder,
): Promise<RankChange | undefined> {
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

/** Runs `work` with the order's idempotency key marked as running. */
export async function whileRunning<T>(app: Ranking, order: ChangeOrder, work: () => Promise<T>): Promise<T> {
  const { caller, idempotency } = order;
  if (idempotency === undefined || caller.keyId === undefined) return work();
  refuseWhileRunning(app, order); // another may have begun while the store was asked
  const mine = slot(caller.keyId, idempotency);
  app.running.set(mine, idempotency.fingerprint);
  try {
    return await work();
  } finally {
    app.running.delete(mine);
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
