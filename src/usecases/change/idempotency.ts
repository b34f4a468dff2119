import { RankdError } from '../../base/errors.ts';
import { idempotencyWindowMs, type RankChange } from '../../core/model.ts';
import type { ChangeCommand } from './change-command.ts';
import type { Ranking } from './ranking.ts';

interface Claim extends AsyncDisposable {
  /** The change that the key already identifies: the request is a repeat. */
  earlier?: RankChange;
}

/**
 * Claims the Idempotency-Key of a command, if it has one, until the claim is disposed. Throws `idempotency_in_progress`
 * if the same request is still running, and `idempotency_mismatch` if the key belongs to another request.
 */
export async function claimIdempotencyKey(
  { store, group, clock }: Pick<Ranking, 'store' | 'group' | 'clock'>,
  { caller: { keyId }, idempotency }: Pick<ChangeCommand, 'caller' | 'idempotency'>,
): Promise<Claim> {
  if (idempotency === undefined || keyId === undefined) return claim();
  const { fingerprint } = idempotency;
  const slot = { keyId, idempotencyKey: idempotency.key, group: group.title };
  const since = clock.now() - idempotencyWindowMs;
  const standing = await store.claimIdempotencyKey({ ...slot, fingerprint, since });
  // The store itself releases a claim whose release failed, as soon as it responds.
  if (standing.is === 'claimed') return claim(() => store.releaseIdempotencyKey(slot).catch(() => undefined));
  const known = standing.is === 'running' ? standing.fingerprint : standing.change.fingerprint;
  if (known !== fingerprint) throw mismatch();
  if (standing.is === 'running' || standing.change.state === 'pending') throw inProgress();
  return { ...claim(), earlier: standing.change };
}

function claim(release: () => Promise<void> = async () => undefined): Claim {
  return { [Symbol.asyncDispose]: release };
}

function inProgress(): RankdError {
  const message = 'The first request with this Idempotency-Key is still running; ask again.';
  return new RankdError('idempotency_in_progress', message, { retryAfterMs: 1_000 });
}

function mismatch(): RankdError {
  return new RankdError(
    'idempotency_mismatch',
    'This Idempotency-Key was already used for another change; use a new one.',
  );
}
