import type { Logger } from '../../base/log.ts';
import { configRefused, configReloaded } from '../../core/events.ts';
import type { Ports } from '../../ports/index.ts';

/** The outcome of a reload of `file`, requested by `by`. */
export type Reload = { by: string; file: string } & (
  | { refused: string }
  | { applied: string[]; needRestart: string[] }
);

/**
 * Records the outcome of a reload in the audit. It never rejects: a configuration is in force even if this can't be
 * recorded.
 */
export async function auditReload(
  { store, clock, log }: Pick<Ports, 'store' | 'clock'> & { log: Logger },
  reload: Reload,
): Promise<void> {
  const { by, file } = reload;
  const doing = { by, at: clock.now() };
  const event =
    'refused' in reload
      ? configRefused(file, reload.refused, doing)
      : configReloaded(file, { applied: reload.applied, needRestart: reload.needRestart }, doing);
  await store.appendAudit(event).catch((error) => log.error({ err: error }, 'the audit could not be written'));
}
