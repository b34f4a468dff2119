import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { RankChange } from '../../../src/core/model.ts';
import type { Policy } from '../../../src/core/rules/rule.ts';
import { judgeNewWebhook, type NewWebhook } from '../../../src/core/webhooks/webhook-changes.ts';
import { engineOf } from '../../../src/stores/engine.ts';
import type { Ranking } from '../../../src/usecases/change/ranking.ts';
import { verifyAudit } from '../../../src/usecases/history/verify-audit.ts';
import { pruneRecords } from '../../../src/usecases/upkeep/prune-records.ts';
import { disableWebhook } from '../../../src/usecases/webhooks/edit-webhooks.ts';
import { newChange, operate, record } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

async function openForPruning(pauses: Partial<Pick<Policy, 'cooldowns' | 'rankerCooldownMs'>> = {}) {
  const dataDir = tempDir();
  const clock = new ManualClock();
  const store = await engineOf({ dataDir, clock }).openStore();
  onTestFinished(() => store.close());
  const needs = { store, clock, policy: { cooldowns: [], rankerCooldownMs: 0, ...pauses }, breaker: undefined };
  const app = needs as unknown as Ranking; // only the parts that retention uses
  const stop = new AbortController();
  const round = async (retention: { historyMs?: number; auditMs?: number }) => {
    const done = pruneRecords(app, { historyMs: undefined, auditMs: undefined, ...retention }, stop.signal);
    let isDone = false;
    const end = () => {
      isDone = true;
    };
    done.then(end, end);
    while (!isDone) await clock.advance(100);
    await done;
  };
  const keep = async (count: number, requestedAt: number, rest: Partial<RankChange> = {}) => {
    for (let index = 0; index < count; index += 1) {
      const when = { requestedAt, finishedAt: requestedAt };
      await record(store, newChange({ rankeeId: index, state: 'refused', ...when, ...rest }));
    }
  };
  return { dataDir, clock, store, stop, round, keep };
}

test('a round removes all old records in small steps, and the audit records the removal once', async () => {
  const { store, clock, round, keep } = await openForPruning();
  await keep(700, clock.now() - 40 * dayMs);
  await keep(3, clock.now() - dayMs);
  await clock.advance(100 * dayMs);
  await keep(3, clock.now() - dayMs);
  await round({ historyMs: 30 * dayMs, auditMs: 30 * dayMs });
  expect(await store.listChanges({ limit: 999 })).toHaveLength(3);
  const events = await store.listAudit({ limit: 9 });
  expect(events.map(({ by, action, detail }) => [by, action, detail['removed']])).toEqual([
    ['daemon', 'audit.prune', 703],
    ['daemon', 'history.prune', 703],
    ...events.slice(2).map(() => [expect.any(String), 'rank.refused', undefined]),
  ]);
  expect(events).toHaveLength(5);
  expect(await verifyAudit({ store })).toMatchObject({ breakCount: 0, anchor: { id: 703 } });
});

test('nothing is removed unless retention is configured, and nothing is recorded if nothing was removed', async () => {
  const { store, clock, round, keep } = await openForPruning();
  await keep(2, clock.now() - 4_000 * dayMs);
  await clock.advance(4_000 * dayMs);
  await round({});
  await round({ historyMs: 9_000 * dayMs, auditMs: 9_000 * dayMs });
  expect(await store.listChanges({ limit: 9 })).toHaveLength(2);
  expect(await store.listAudit({ limit: 9 })).toHaveLength(2);
});

test.each([
  ['idempotency keys', {}, 24],
  ['a cooldown', { cooldowns: [{ from: 0, forMs: 72 * hourMs }] }, 72],
  ["a ranker's cooldown", { rankerCooldownMs: 72 * hourMs }, 72],
])('changes needed for %s are retained, however short history.keep is', async (_, pauses, hours) => {
  const { store, clock, round, keep } = await openForPruning(pauses);
  const requestedAt = clock.now() - (hours - 1) * hourMs;
  await keep(1, clock.now() - (hours + 1) * hourMs);
  await keep(1, requestedAt);
  await round({ historyMs: hourMs });
  expect(await store.listChanges({ limit: 9 })).toMatchObject([{ requestedAt }]);
});

test('a stopped round records how many changes it removed', async () => {
  const { store, clock, stop, keep, round } = await openForPruning();
  await keep(900, clock.now() - 40 * dayMs);
  const aborted = clock.sleep(50).then(() => stop.abort());
  await round({ historyMs: dayMs });
  await aborted;
  expect(await store.listChanges({ limit: 999 })).toHaveLength(600);
  expect(await store.listAudit({ limit: 1 })).toMatchObject([{ action: 'history.prune', detail: { removed: 300 } }]);
});

test('retention removes nothing from an edited audit', async () => {
  const { dataDir, store, clock, round } = await openForPruning();
  for (const subject of ['a', 'b', 'c'])
    await operate({ store: store, clock }).appendAudit({ by: 'daemon', action: 'x', subject, detail: {} });
  const database = new Database(join(dataDir, 'rankd.db'));
  database.exec("DROP TRIGGER audit_is_never_edited; UPDATE audit_events SET subject = 'z' WHERE id = 2");
  database.close();
  await clock.advance(9 * dayMs);
  await expect(round({ auditMs: dayMs })).rejects.toMatchObject({ code: 'conflict', hint: 'rankd audit verify' });
  expect(await store.listAudit({ limit: 9 })).toHaveLength(3);
});

test('retention records the last event to be removed before it removes the first one', async () => {
  const { store, clock, stop, round, keep } = await openForPruning();
  await keep(700, clock.now() - 40 * dayMs);
  await clock.advance(9 * dayMs);
  const { rows } = await store.auditChain({ afterId: 699, limit: 1 });
  const aborted = clock.sleep(250).then(() => stop.abort()); // after three search steps and one removal
  await round({ auditMs: dayMs });
  await aborted;
  const [prune] = await store.listAudit({ limit: 1 });
  expect(prune).toMatchObject({ action: 'audit.prune', detail: { upToId: 700, upToHash: rows[0]?.hash } });
  expect(await verifyAudit({ store })).toMatchObject({ anchor: { id: 300 }, breakCount: 0 });
});

test('retention stops at the first event that is too recent, even if later events have older times', async () => {
  const { store, clock, round } = await openForPruning();
  const append = (subject: string) =>
    operate({ store, clock }).appendAudit({ by: 'x', action: 'y', subject, detail: {} });
  await append('a');
  clock.setWallClock(clock.now() - 5 * dayMs);
  await append('b');
  clock.setWallClock(clock.now() + 5 * dayMs);
  await round({ auditMs: dayMs });
  expect(await store.listAudit({ limit: 9 })).toHaveLength(2);
});

test('events that wait for a webhook are retained for seven days, and no longer', async () => {
  const { store, clock, round, keep } = await openForPruning();
  await keep(1, clock.now());
  await clock.advance(hourMs);
  const webhook: NewWebhook = {
    id: 'wh_a',
    name: 'a',
    kind: 'standard',
    shown: 'a',
    events: ['refusals'],
    createdAt: 0,
  };
  await store.updateWebhooks(judgeNewWebhook(webhook, { by: 'cli:ann@host', at: clock.now() }));
  await keep(2, clock.now());
  const left = async () => (await store.listChanges({ limit: 9 })).length;
  await clock.advance(6 * dayMs);
  await round({ historyMs: dayMs, auditMs: dayMs });
  expect(await left()).toBe(2);
  const { events } = await store.eventsAfter({ after: 0, actions: ['rank.refused'], limit: 9 });
  const range = events.map(({ event }) => event.id);
  expect(range).toHaveLength(2);
  await clock.advance(2 * dayMs);
  await round({ historyMs: dayMs, auditMs: dayMs });
  expect(await left()).toBe(0);
  const skips = await store.listAudit({ limit: 9 });
  expect(skips.filter(({ action }) => action === 'webhook.skip')).toMatchObject([
    { subject: 'wh_a', by: 'daemon', detail: { name: 'a', fromId: range[0], toId: range[1], count: 2 } },
  ]);
  await round({ historyMs: dayMs, auditMs: dayMs });
  expect((await store.listWebhooks())[0]).toMatchObject({ cursor: range[1] });
});

test('events for a declared webhook that a game chose are retained and counted, and the count includes earlier skips', async () => {
  const { store, clock, round, keep } = await openForPruning();
  const webhook: NewWebhook = {
    ...{ id: 'wh_a', name: 'a', kind: 'standard', shown: 'a', events: [], isForGames: true, addressHash: 'hash' },
    ...{ declaredIn: 'rankd.yaml:5', createdAt: 0 },
  };
  await store.updateWebhooks(judgeNewWebhook(webhook, { by: 'daemon', at: clock.now() }));
  const skipped = async () => {
    await round({ historyMs: dayMs, auditMs: dayMs });
    const skips = await store.listAudit({ action: 'webhook.skip', limit: 9 });
    return skips.map(({ detail }) => detail['count']);
  };
  await keep(2, clock.now(), { webhookHash: 'hash' });
  await clock.advance(6 * dayMs);
  expect(await skipped()).toEqual([]);
  expect(await store.listChanges({ limit: 9 })).toHaveLength(2);
  await clock.advance(2 * dayMs);
  expect(await skipped()).toEqual([2]);
  await keep(3, clock.now(), { webhookHash: 'hash' });
  await keep(1, clock.now(), { webhookHash: 'of another' });
  await clock.advance(8 * dayMs);
  expect((await skipped())[0]).toBe(5);
});

test('events that wait for a disabled webhook are retained, too', async () => {
  const { store, clock, round, keep } = await openForPruning();
  const webhook: NewWebhook = {
    ...{ id: 'wh_a', name: 'a', kind: 'standard', shown: 'a', events: ['refusals'], createdAt: 0 },
  };
  await store.updateWebhooks(judgeNewWebhook(webhook, { by: 'cli:ann@host', at: clock.now() }));
  await disableWebhook({ store, clock }, { name: 'a', by: 'cli:ann@host' });
  await keep(2, clock.now());
  await clock.advance(6 * dayMs);
  await round({ historyMs: dayMs, auditMs: dayMs });
  expect((await store.eventsAfter({ after: 0, actions: ['rank.refused'], limit: 9 })).events).toHaveLength(2);
});
