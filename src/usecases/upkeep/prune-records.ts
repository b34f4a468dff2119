import type { RetentionConfig } from '../../config/config.ts';
import { lastRemovable } from '../../core/audit.ts';
import { auditPruned, historyPruned } from '../../core/events.ts';
import { idempotencyWindowMs } from '../../core/model.ts';
import { maxAgeMs } from '../../core/webhooks/progress.ts';
import type { Ports } from '../../ports/index.ts';
import type { Ranking } from '../change/ranking.ts';
import { oldestUndelivered, skipOldEvents } from '../webhooks/outbox.ts';

/** Each step removes at most this many rows, and a pause follows, so that requests are not delayed. */
const stepRows = 300;
const pauseMs = 100;

/**
 * Removes expired records, oldest first, until none is left or `stop` is aborted. Records the removal in the audit log.
 */
export async function pruneRecords(
  app: Ranking,
  { historyMs, auditMs }: RetentionConfig,
  stop: AbortSignal,
): Promise<void> {
  const now = app.clock.now();
  const needed = await neededByWebhooks(app);
  await app.store.limits?.forgetFullLimits();
  const olderThan = (ms: number) => Math.min(now - ms, needed);
  if (historyMs !== undefined) await pruneHistory(app, olderThan(Math.max(historyMs, neededMs(app))), stop);
  if (auditMs !== undefined) await pruneAudit(app, olderThan(auditMs), stop);
}

/**
 * Returns the time (epoch milliseconds) before which webhooks need no events. Also skips enabled webhooks' undelivered
 * events that are too old, and removes old deliveries.
 */
async function neededByWebhooks({ store, clock }: Tools): Promise<number> {
  const webhooks = await store.listWebhooks();
  for (const webhook of webhooks.filter(({ state }) => state === 'enabled')) {
    await skipOldEvents({ store, clock }, webhook);
  }
  const oldest = await oldestUndelivered({ store });
  const before = clock.now() - maxAgeMs;
  if (webhooks.length > 0) await store.trimDeliveries({ before, keep: keptDeliveries });
  return oldest === undefined ? Number.POSITIVE_INFINITY : Math.max(before, oldest - slackMs);
}

const keptDeliveries = 200;
/** A change can end shortly before its event is recorded. */
const slackMs = 60_000;

/** Removes expired changes, and records their total number in the audit log once per round. */
async function pruneHistory({ store, clock }: Tools, before: number, stop: AbortSignal): Promise<void> {
  let removed = 0;
  let cursor: string | undefined;
  try {
    await inSteps({ clock, stop }, async () => {
      const step = await store.pruneChanges({ before, cursor, limit: stepRows });
      cursor = step.next;
      removed += step.removed;
      return cursor !== undefined;
    });
  } finally {
    if (removed > 0) await store.appendAudit(historyPruned({ removed, before }, { by: 'daemon', at: clock.now() }));
  }
}

/**
 * Removes expired audit events. First appends an event that announces the removal: if the chain's beginning is missing
 * without an announcement, someone has tampered with the audit log.
 */
async function pruneAudit({ store, clock }: Tools, before: number, stop: AbortSignal): Promise<void> {
  const { anchor } = await store.auditChain({ afterId: 0, limit: 0 });
  let upTo = anchor;
  await inSteps({ clock, stop }, async () => {
    const { rows } = await store.auditChain({ afterId: upTo.id, limit: stepRows });
    const from = upTo.id;
    upTo = lastRemovable(upTo, rows, ({ at }) => at < before);
    return upTo.id - from === stepRows;
  });
  const removed = upTo.id - anchor.id;
  if (removed === 0 || stop.aborted) return;
  await store.appendAudit(auditPruned({ removed, before, upTo }, { by: 'daemon', at: clock.now() }));
  await inSteps({ clock, stop }, async () => {
    return (await store.pruneAudit({ upToId: upTo.id, limit: stepRows })) === stepRows;
  });
}

type Tools = Pick<Ports, 'store' | 'clock'>;

/** Repeats `step`, with a pause after each run, until it returns false or `stop` is aborted. */
async function inSteps(
  { clock, stop }: Pick<Ports, 'clock'> & { stop: AbortSignal },
  step: () => Promise<boolean>,
): Promise<void> {
  while (!stop.aborted && (await step())) await clock.sleep(pauseMs, stop).catch(() => undefined);
}

/** Returns how many milliseconds of history the idempotency keys, the cooldowns and the breaker need. */
function neededMs({ policy, breaker }: Ranking): number {
  const cooldownsMs = policy.cooldowns.map(({ forMs }) => forMs);
  return Math.max(idempotencyWindowMs, ...cooldownsMs, policy.rankerCooldownMs, breaker?.windowMs ?? 0);
}
