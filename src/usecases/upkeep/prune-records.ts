import type { RetentionConfig } from '../../config/config.ts';
import { recordsPruned } from '../../core/events.ts';
import { idempotencyWindowMs } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';
import type { Ranking } from '../change/ranking.ts';

/** Few enough that requests do not notice a step, with room between two steps for them. */
const stepRows = 300;
const pauseMs = 100;

/**
 * One round: removes what is older than it has to be kept, oldest first, until nothing is or `stop` is aborted. The audit tells
 * once a round how much went.
 */
export async function pruneRecords(
  app: Ranking,
  { historyMs, auditMs }: RetentionConfig,
  stop: AbortSignal,
): Promise<void> {
  if (historyMs !== undefined) {
    const before = app.clock.now() - Math.max(historyMs, neededMs(app));
    let cursor: string | undefined;
    await prune(app, { what: 'history', before, stop }, async () => {
      const step = await app.store.pruneChanges({ before, cursor, limit: stepRows });
      cursor = step.next;
      return { removed: step.removed, isMore: cursor !== undefined };
    });
  }
  if (auditMs !== undefined) {
    const before = app.clock.now() - auditMs;
    await prune(app, { what: 'audit', before, stop }, async () => {
      const removed = await app.store.pruneAudit({ before, limit: stepRows });
      return { removed, isMore: removed === stepRows };
    });
  }
}

async function prune(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { what, before, stop }: { what: 'history' | 'audit'; before: number; stop: AbortSignal },
  step: () => Promise<{ removed: number; isMore: boolean }>,
): Promise<void> {
  let removed = 0;
  try {
    for (let isMore = true; isMore && !stop.aborted; ) {
      const done = await step();
      removed += done.removed;
      isMore = done.isMore;
      if (isMore) await clock.sleep(pauseMs, stop).catch(() => undefined);
    }
  } finally {
    if (removed > 0)
      await store.appendAudit(recordsPruned(what, { removed, before }, { by: 'daemon', at: clock.now() }));
  }
}

/** Idempotency keys, cooldowns and the breaker look back on the history for so long. */
function neededMs({ policy, breaker }: Ranking): number {
  return Math.max(idempotencyWindowMs, policy.cooldownMs, policy.rankerCooldownMs, breaker?.windowMs ?? 0);
}
