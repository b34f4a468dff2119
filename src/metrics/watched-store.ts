import type { ErrorCode } from '../base/errors.ts';
import type { Store } from '../ports/index.ts';
import type { Meters } from './meters.ts';

/** A store that counts how the changes it keeps ended. */
export function watchedStore(store: Store, meters: Meters): Store {
  const count = (outcome: string, code: ErrorCode | null, isDryRun: boolean) =>
    meters.changes.inc({ outcome, code: code ?? '', dry_run: String(isDryRun) });
  return {
    ...store,
    async recordChange(change) {
      await store.recordChange(change);
      count(change.state, change.code, change.dryRun);
    },
    async finishChange(changeId, outcome) {
      const isEnded = await store.finishChange(changeId, outcome);
      if (isEnded) count(outcome.state, outcome.code, false);
      return isEnded;
    },
  };
}
