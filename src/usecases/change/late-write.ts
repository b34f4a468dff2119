import { reopenedLate } from '../../core/change-state.ts';
import { changeEvent } from '../../core/events.ts';
import type { RankChange } from '../../core/model.ts';
import type { Ranking } from './ranking.ts';

/** By then, the new holder has finished with the change, or the next round of recovery has. */
const tryForMs = 120_000;
const tryEveryMs = 1_000;
/** A live node learns this from one of its next heartbeats. */
const lookEveryMs = 100;
const looks = 20;

type LateWriteContext = Pick<Ranking, 'store' | 'clock' | 'trust'>;

/**
 * A write of this change may have reached the platform after another node had taken the change over. The audit records
 * that. The change is reopened and reconciled like any other, unless the member was changed since: then only a person
 * can judge it, and `rankd status` names the member. `leftMs`: the remaining lease of this node. Never rejects.
 */
export async function recoverLateWrite(app: LateWriteContext, change: RankChange, leftMs: () => number): Promise<void> {
  for (let look = 0; look < looks; look += 1) {
    if (leftMs() > 0) return; // no node has declared this one dead, so none has taken over
    await app.clock.sleep(lookEveryMs);
  }
  const giveUpAt = app.clock.monotonic() + tryForMs;
  let isNoted = false;
  let became: Became = 'not known';
  for (;;) {
    try {
      if (!isNoted) await app.store.appendAudit(changeEvent(change, 'late_write', app.clock.now()));
      isNoted = true;
      became = await openAgain(app, change);
    } catch {
      // the store is tried again
    }
    if (became !== 'not known' || app.clock.monotonic() >= giveUpAt) break;
    await app.clock.sleep(tryEveryMs);
  }
  app.trust.reportLateWrite(change, became);
}

/** The result. `changed since`: the member has a newer change. */
type Became = 'opened again' | 'changed since' | 'not known';

async function openAgain({ store, clock }: LateWriteContext, change: RankChange): Promise<Became> {
  const { latestId, open } = await store.latestChange(change.rankeeId);
  if (latestId !== change.id) return 'changed since';
  if (open !== undefined) return 'not known'; // its holder may have read the member before the write
  const reopened = await store.reopenChange(change.id, (kept) => reopenedLate(kept, change, clock.now()));
  return reopened === undefined ? 'not known' : 'opened again';
}
