import type { Logger } from '../../base/log.ts';
import { isoTime } from '../../base/time.ts';
import { configRefused, configReloaded, credentialEvent, dashboardEvent } from '../../core/events.ts';
import { judgeAlarms, type RoleMisfit } from '../../core/role-settings.ts';
import type { Ports } from '../../ports/index.ts';
import { callWithin } from '../../ports/platform.ts';
import type { DaemonContext } from '../daemon-context.ts';
import { isInCharge } from './nodes.ts';

type Reload = { by: string; file: string } & ({ refused: string } | { applied: string[]; needRestart: string[] });

/**
 * Records a reload's outcome in the audit log. Never rejects, because the new configuration applies even if the outcome
 * can't be recorded.
 */
export async function auditReload(
  { store, clock, log }: Pick<Ports, 'store' | 'clock'> & { log: Logger },
  reload: Reload,
): Promise<void> {
  const { by, file } = reload;
  const actor = { by, at: clock.now() };
  const event =
    'refused' in reload
      ? configRefused(file, reload.refused, actor)
      : configReloaded(file, { applied: reload.applied, needRestart: reload.needRestart }, actor);
  await store.appendAudit(event).catch((error) => log.error({ err: error }, 'the audit could not be written'));
}

export async function auditDashboard(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  what: Parameters<typeof dashboardEvent>[0],
  { by, ...detail }: { by: string } & Record<string, unknown>,
): Promise<void> {
  await store.appendAudit(dashboardEvent(what, detail, { by, at: clock.now() }));
}

/** The alarms read the roles this often. Without rank changes, there may be no other reads. */
const readEveryMs = 60_000;

/**
 * Raises one alarm for each entry of a setting that no longer identifies its role. Raises another only if the reason
 * changes.
 */
export class MisfitAlarms {
  #judged: readonly RoleMisfit[] | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  async record(app: DaemonContext): Promise<void> {
    const { group, store, clock, log } = app;
    await this.#read(app);
    const { misfits } = group;
    if (misfits === undefined || misfits === this.#judged || !(await isInCharge(app, 'alarms'))) return;
    const judge = judgeAlarms(misfits, { by: 'daemon', at: clock.now() });
    const verdict = judge(await store.findMeanings(group.title));
    if ('events' in verdict && verdict.events.length > 0) {
      await store.updateMeanings(group.title, judge);
      for (const { action, subject, detail } of verdict.events) {
        if (action === 'configuration.fit') log.info({ entry: detail['entry'] }, `${subject} fits the group again`);
        else log.warn({ hint: detail['fix'], problem: 'roles' }, String(detail['message']));
      }
    }
    this.#judged = misfits;
  }

  async #read({ group, clock, deadCredential }: DaemonContext): Promise<void> {
    const now = clock.monotonic();
    if (group.entries.length === 0 || now - this.#readAt < readEveryMs || deadCredential() !== undefined) return;
    this.#readAt = now;
    using call = callWithin(clock, readWithinMs, 'roles');
    await group.scheme(call).catch(() => undefined); // the credential check reports the reason
  }
}

const readWithinMs = 10_000;

type CredentialState = 'refuse' | 'accept' | 'expire_soon';

const soonMs = 14 * 86_400_000;

/**
 * Adds one event to the audit log for each change in the state of this daemon's credential. After a restart, compares
 * the state with the last such event in the log, which may be another daemon's.
 */
export class CredentialEvents {
  #recorded: CredentialState | undefined;

  async record(app: DaemonContext): Promise<void> {
    const { store, clock } = app;
    const state = credentialStateOf(app);
    if (state === undefined || state === this.#recorded) return;
    this.#recorded ??= await lastRecorded(app);
    if (state !== this.#recorded) {
      const expiresAt = app.latestCredential()?.expiresAt;
      const message = app.deadCredential()?.message;
      const detail = {
        ...(message !== undefined && { message }),
        ...(expiresAt !== undefined && { expiresAt: isoTime(expiresAt) }),
      };
      await store.appendAudit(credentialEvent(state, detail, { by: 'daemon', at: clock.now() }));
    }
    this.#recorded = state;
  }
}

/** Returns `undefined` until the platform has reported on the credential. */
function credentialStateOf({ deadCredential, latestCredential, clock }: DaemonContext): CredentialState | undefined {
  if (deadCredential() !== undefined) return 'refuse';
  const latest = latestCredential();
  if (latest === undefined || latest.state === 'unreported') return undefined;
  return latest.expiresAt !== undefined && latest.expiresAt - clock.now() < soonMs ? 'expire_soon' : 'accept';
}

async function lastRecorded({ store }: Pick<DaemonContext, 'store'>): Promise<CredentialState> {
  const [last] = await store.listAudit({ action: 'credential', limit: 1 });
  return last === undefined ? 'accept' : (last.action.slice('credential.'.length) as CredentialState);
}
