import { isoTime } from '../../base/time.ts';
import { credentialEvent } from '../../core/events.ts';
import type { DaemonContext } from '../daemon-context.ts';

type Standing = 'refuse' | 'accept' | 'expire_soon';

const soonMs = 14 * 86_400_000;

/** Records changes of the credential's state in the audit: once each, across restarts. */
export class CredentialTeller {
  #told: Standing | undefined;

  async tell(app: DaemonContext): Promise<void> {
    const { store, clock } = app;
    const standing = standingOf(app);
    if (standing === undefined || standing === this.#told) return;
    this.#told ??= await lastTold(app);
    if (standing !== this.#told) {
      const expiresAt = app.latestCredential()?.expiresAt;
      const message = app.deadCredential()?.message;
      const detail = {
        ...(message !== undefined && { message }),
        ...(expiresAt !== undefined && { expiresAt: isoTime(expiresAt) }),
      };
      await store.appendAudit(credentialEvent(standing, detail, { by: 'daemon', at: clock.now() }));
    }
    this.#told = standing;
  }
}

/** `undefined` until the platform has reported a state. */
function standingOf({ deadCredential, latestCredential, clock }: DaemonContext): Standing | undefined {
  if (deadCredential() !== undefined) return 'refuse';
  const latest = latestCredential();
  if (latest === undefined || latest.state === 'untold') return undefined;
  return latest.expiresAt !== undefined && latest.expiresAt - clock.now() < soonMs ? 'expire_soon' : 'accept';
}

/** A credential without an event was accepted. */
async function lastTold({ store }: Pick<DaemonContext, 'store'>): Promise<Standing> {
  const [last] = await store.listAudit({ action: 'credential', limit: 1 });
  return last === undefined ? 'accept' : (last.action.slice('credential.'.length) as Standing);
}
