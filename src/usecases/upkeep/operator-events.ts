import type { Logger } from '../../base/log.ts';
import { configRefused, configReloaded, dashboardEvent } from '../../core/events.ts';
import type { Ports } from '../../ports/index.ts';

/** The outcome of a reload of `file`, requested by `by`. */
type Reload = { by: string; file: string } & ({ refused: string } | { applied: string[]; needRestart: string[] });

/**
 * Records the outcome of a reload in the audit. It never rejects: a configuration is in force even if this can't be
 * recorded.
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

/** Records in the audit who used the operator's page, or was refused there. */
export async function auditDashboard(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  what: Parameters<typeof dashboardEvent>[0],
  { by, ...detail }: { by: string } & Record<string, unknown>,
): Promise<void> {
  await store.appendAudit(dashboardEvent(what, detail, { by, at: clock.now() }));
}
