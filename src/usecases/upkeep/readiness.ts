import { RankdError } from '../../base/errors.ts';
import type { CallContext } from '../../ports/index.ts';
import type { DaemonContext } from '../daemon-context.ts';

/** Resolves if the daemon can change ranks: its store takes writes, platform and credential work, and it is not stopping. Throws why not. */
export async function requireReady(app: DaemonContext, call: CallContext): Promise<void> {
  if (app.requests.isDraining) {
    throw new RankdError('shutting_down', 'rankd is stopping or restarting.', { retryAfterMs: 5_000 });
  }
  const dead = app.deadCredential();
  if (dead !== undefined) throw dead;
  if (app.trust.stop !== undefined) throw app.trust.stop;
  await app.store.pingWrites();
  await app.group.requireReadable(call);
}
