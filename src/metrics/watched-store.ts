import type { ErrorCode } from '../base/errors.ts';
import type { ChangeState } from '../core/model.ts';
import type { Store } from '../ports/index.ts';
import type { Meters } from './meters.ts';

export function watchedStore(store: Store, meters: Meters): Store {
  const count = (outcome: string, code: ErrorCode | null, isDryRun: boolean) =>
    meters.changes.inc({ outcome, code: code ?? '', dry_run: String(isDryRun) });
  const watched: Pick<Store, 'beginChange' | 'recordChange' | 'updateChange' | 'reopenChange'> = {
    async beginChange(change, question, judge) {
      const verdict = await store.beginChange(change, question, judge);
      // a change that needs no writes is stored as already ended
      if (verdict.do === 'begin' && change.state !== 'pending') count(change.state, change.code, change.dryRun);
      return verdict;
    },
    async recordChange(change, events) {
      await store.recordChange(change, events);
      count(change.state, change.code, change.dryRun);
    },
    async updateChange(changeId, judge) {
      let before: ChangeState | undefined;
      const stored = await store.updateChange(changeId, (found) => {
        before = found.change.state;
        return judge(found);
      });
      if (stored !== undefined && stored.state !== before) count(stored.state, stored.code, false);
      return stored;
    },
    async reopenChange(changeId, judge) {
      const stored = await store.reopenChange(changeId, judge);
      if (stored !== undefined) count(stored.state, stored.code, false);
      return stored;
    },
  };
  // Binds every other method to the store itself, which may be an object with private fields.
  return new Proxy(store, {
    get(_, name) {
      const owner = name in watched ? watched : store;
      const value = Reflect.get(owner, name);
      return typeof value === 'function' ? value.bind(owner) : value;
    },
  });
}
