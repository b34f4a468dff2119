import type { ServedApp } from './app.ts';
import { changedSettings } from './config/changed-settings.ts';
import type { LoadedConfig } from './config/load.ts';
import { RankdError } from './errors.ts';
import { checkLadder } from './usecases/check-ladder.ts';
import { declareKeys } from './usecases/declare-keys.ts';

/**
 * Takes a new configuration up in a running daemon, whole or not at all, and says in log and audit what became of it. Returns
 * the one that is in force.
 */
export async function reload(
  app: ServedApp,
  { before, load }: { before: LoadedConfig; load: () => Promise<LoadedConfig> },
): Promise<LoadedConfig> {
  try {
    const after = await load();
    const wiring = await app.rewired(after.config);
    await checkLadder({ ...app, ...wiring });
    await declareKeys(app, after.config.keys);
    Object.assign(app, wiring);
    const changed = changedSettings(before, after);
    app.log.info(changed, 'the configuration was read anew');
    await app.store.appendAudit({ by: 'daemon', action: 'config.reload', subject: nameOf(after), detail: changed });
    return after;
  } catch (cause) {
    const { message } = cause instanceof RankdError ? cause : new RankdError('internal', String(cause));
    app.log.error({ err: cause }, 'the new configuration was refused; the old one stays in force');
    await app.store.appendAudit({
      by: 'daemon',
      action: 'config.refuse',
      subject: nameOf(before),
      detail: { message },
    });
    return before;
  }
}

function nameOf({ file }: LoadedConfig): string {
  return file ?? 'defaults';
}
