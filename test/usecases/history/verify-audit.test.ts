import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { chainStart, linkHash } from '../../../src/core/audit.ts';
import { auditPruned, changeEvent } from '../../../src/core/events.ts';
import { judgeForgetting } from '../../../src/core/forgetting.ts';
import { engineOf } from '../../../src/stores/engine.ts';
import { verifyAudit } from '../../../src/usecases/history/verify-audit.ts';
import { newChange, operate } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** Opens a store with six events, and also its database file, so that a test can tamper with it. */
async function sixEvents() {
  const dataDir = tempDir();
  const store = await engineOf({ dataDir, clock: new ManualClock() }).openStore();
  const database = new Database(join(dataDir, 'rankd.db'));
  onTestFinished(async () => {
    database.close();
    await store.close();
  });
  for (const subject of ['a', 'b', 'c', 'd', 'e', 'f']) {
    await operate({ store }).appendAudit({
      by: 'cli:ann@host',
      action: 'whitelist.add',
      subject,
      detail: { note: 'lobby' },
    });
  }
  return { store, database };
}

const unlock =
  'DROP TRIGGER audit_is_never_edited; DROP TRIGGER audit_is_never_deleted; DROP TRIGGER audit_only_grows_at_its_end;';

test.each([
  [
    'an edited detail',
    "UPDATE audit_events SET detail = replace(detail, 'lobby', 'Lobby') WHERE id = 4",
    [{ kind: 'changed', id: 4 }],
  ],
  ['an edited time', 'UPDATE audit_events SET at = at + 1 WHERE id = 5', [{ kind: 'changed', id: 5 }]],
  ['an edited name', "UPDATE audit_events SET done_by = 'cli:eve@host' WHERE id = 1", [{ kind: 'changed', id: 1 }]],
  [
    'an edited hash',
    'UPDATE audit_events SET hash = zeroblob(32) WHERE id = 2',
    [
      { kind: 'changed', id: 2 },
      { kind: 'changed', id: 3 },
    ],
  ],
  ['a removed row', 'DELETE FROM audit_events WHERE id = 3', [{ kind: 'missing', id: 3, toId: 3 }]],
  ['a removed beginning', 'DELETE FROM audit_events WHERE id < 4', [{ kind: 'missing', id: 1, toId: 3 }]],
  ['a removed end', 'DELETE FROM audit_events WHERE id > 4', [{ kind: 'missing', id: 5, toId: 6 }]],
  ['an emptied audit', 'DELETE FROM audit_events', [{ kind: 'missing', id: 1, toId: 6 }]],
  [
    'a removed row with the gap closed',
    'DELETE FROM audit_events WHERE id = 3; UPDATE audit_events SET id = id - 1 WHERE id > 3; UPDATE sqlite_sequence SET seq = 5',
    [
      { kind: 'changed', id: 3 },
      { kind: 'changed', id: 4 },
      { kind: 'changed', id: 5 },
    ],
  ],
  [
    'two swapped rows',
    'UPDATE audit_events SET id = 99 WHERE id = 2; UPDATE audit_events SET id = 2 WHERE id = 3; UPDATE audit_events SET id = 3 WHERE id = 99',
    [
      { kind: 'changed', id: 2 },
      { kind: 'changed', id: 3 },
      { kind: 'changed', id: 4 },
    ],
  ],
  [
    'an inserted row',
    'INSERT INTO audit_events SELECT 7, at, done_by, action, subject, key_id, detail, hash FROM audit_events WHERE id = 6',
    [{ kind: 'changed', id: 7 }],
  ],
])('%s is reported with the event numbers', async (_, damage, breaks) => {
  const { store, database } = await sixEvents();
  database.exec(unlock + damage);
  expect(await verifyAudit({ store })).toMatchObject({ breakCount: breaks.length, breaks });
});

test('an untouched audit passes, and each of its hashes is found as a noted head', async () => {
  const { store } = await sixEvents();
  const { rows } = await store.auditChain({ afterId: 0, limit: 9 });
  for (const { hash } of rows) {
    expect(await verifyAudit({ store }, { notedHead: hash })).toMatchObject({
      rows: 6,
      breakCount: 0,
      notedHead: 'found',
    });
  }
  expect(
    await verifyAudit(
      { store },
      { notedHead: linkHash('', { id: 1, at: 0, by: '', action: '', subject: '', detail: '' }) },
    ),
  ).toMatchObject({ notedHead: 'missing' });
});

test('later events do not hide that the end was removed', async () => {
  const { store, database } = await sixEvents();
  database.exec(`${unlock} DELETE FROM audit_events WHERE id > 4`);
  await operate({ store }).appendAudit({ by: 'daemon', action: 'x', subject: 'y', detail: {} });
  expect(await verifyAudit({ store })).toMatchObject({ breaks: [{ kind: 'missing', id: 5, toId: 6 }] });
});

test('a recomputed chain is detected only by a recorded head', async () => {
  const { store, database } = await sixEvents();
  const { head } = await verifyAudit({ store });
  const { rows } = await store.auditChain({ afterId: 0, limit: 9 });
  database.exec(unlock);
  const notedHeads = new Map(rows.map((row) => [row.id, new Set([row.hash])]));
  expect(await verifyAudit({ store }, { notedHeads })).toMatchObject({ breakCount: 0, notedHeads: { found: 6 } });
  let { hash } = chainStart;
  for (const { hash: _, ...row } of rows) {
    const forged = { ...row, by: 'cli:bob@host' };
    hash = linkHash(hash, forged);
    database
      .prepare('UPDATE audit_events SET done_by = ?, hash = ? WHERE id = ?')
      .run(forged.by, Buffer.from(hash, 'hex'), forged.id);
  }
  expect(await verifyAudit({ store })).toMatchObject({ breakCount: 0 });
  expect(await verifyAudit({ store }, { notedHead: head.hash })).toMatchObject({ breakCount: 0, notedHead: 'missing' });
  expect(await verifyAudit({ store }, { notedHeads })).toMatchObject({
    breaks: rows.map(({ id }) => ({ kind: 'rewritten', id })),
    isIntact: false,
  });
});

test('noted heads detect a removed end even if the row count was adjusted', async () => {
  const { store, database } = await sixEvents();
  const { rows } = await store.auditChain({ afterId: 0, limit: 9 });
  database.exec(`${unlock} DELETE FROM audit_events WHERE id > 4; UPDATE sqlite_sequence SET seq = 4`);
  expect(await verifyAudit({ store })).toMatchObject({ breakCount: 0 });
  const notedHeads = new Map(rows.slice(4).map((row) => [row.id, new Set([row.hash])]));
  expect(await verifyAudit({ store }, { notedHeads })).toMatchObject({ breaks: [{ kind: 'missing', id: 5, toId: 6 }] });
});

test('two different recorded hashes of one event show that the audit was rewritten', async () => {
  const { store } = await sixEvents();
  const { rows } = await store.auditChain({ afterId: 2, limit: 1 });
  const notedHeads = new Map(rows.map((row) => [row.id, new Set([row.hash, 'f'.repeat(64)])]));
  expect(await verifyAudit({ store }, { notedHeads })).toMatchObject({ breaks: [{ kind: 'rewritten', id: 3 }] });
});

/**
 * Returns SQL that no trigger prevents: it anchors the chain at event `id`, and deletes that event and all events
 * before it.
 */
function removeUpTo(id: number): string {
  return `UPDATE audit_anchor SET last_id = ${id}, hash = (SELECT hash FROM audit_events WHERE id = ${id});
          DELETE FROM audit_events WHERE id <= ${id}`;
}

test.each([3, 6])(
  'events #1 to #%i are reported as missing if no retention event explains their removal',
  async (last) => {
    const { store, database } = await sixEvents();
    const { rows } = await store.auditChain({ afterId: last - 1, limit: 1 });
    database.exec(removeUpTo(last));
    expect(await verifyAudit({ store }, { notedHead: rows[0]?.hash })).toMatchObject({
      breaks: [{ kind: 'unexplained', id: 1, toId: last }],
      notedHead: 'removed',
      isIntact: false,
    });
  },
);

test('a retention event explains only the rows that it names, and none if retention is off', async () => {
  const { store, database } = await sixEvents();
  const { rows } = await store.auditChain({ afterId: 0, limit: 9 });
  const [upTo = chainStart, next] = rows.slice(2);
  await store.appendAudit(auditPruned({ removed: 3, before: 0, upTo }, { by: 'daemon', at: 0 }));
  database.exec(removeUpTo(3));
  const hasRetention = async () => true;
  const notedHeads = new Map(rows.map((row) => [row.id, new Set([row.hash])]));
  expect(await verifyAudit({ store }, { hasRetention, notedHead: upTo.hash, notedHeads })).toMatchObject({
    breakCount: 0,
    notedHead: 'removed',
    notedHeads: { found: 3, removed: 3 },
    isIntact: true,
  });
  const unexplained = [{ kind: 'unexplained', id: 1 }];
  expect(await verifyAudit({ store }, { hasRetention: async () => false })).toMatchObject({ breaks: unexplained });
  database.exec(removeUpTo(next?.id ?? 0));
  expect(await verifyAudit({ store }, { hasRetention })).toMatchObject({ breaks: unexplained });
});

test('forgetting a person does not explain other emptied mentions, before or after retention', async () => {
  const { store, database } = await sixEvents();
  for (const rankeeId of [1001, 2002, 1001, 2002, 2002]) {
    await store.appendAudit(changeEvent(newChange({ rankeeId }), 'applied', 0));
  }
  // User 1001 is in events #7 and #9, and event #12 records the erasure.
  const forgetting = { userId: 1001, pseudonym: -5 };
  await store.forgetPerson(forgetting, judgeForgetting(forgetting, { by: 'cli:ann@host', at: 0 }));
  database.exec('CREATE TEMP TABLE written AS SELECT * FROM audit_people');
  const breaksAfter = async (sql: string) => {
    database.exec(sql);
    const { breaks } = await verifyAudit({ store });
    database.exec('DELETE FROM audit_people; INSERT INTO audit_people SELECT * FROM written');
    return breaks;
  };
  const empty = (id: number, pseudonym = -5) =>
    `UPDATE audit_people SET user_id = ${pseudonym}, salt = NULL WHERE event_id = ${id}`;
  const moved = `${empty(8)}; UPDATE audit_people SET user_id = 1001, salt = '00' WHERE event_id = 7`;
  expect(await breaksAfter('')).toEqual([]);
  expect(await breaksAfter(empty(8))).toEqual([{ kind: 'mentions', id: 12 }]);
  expect(await breaksAfter(moved)).toContainEqual({ kind: 'mentions', id: 12 });
  expect(await breaksAfter(empty(8, -6))).toEqual([{ kind: 'changed', id: 8 }]);

  const rows = (await store.auditChain({ afterId: 0, limit: 20 })).rows;
  const prune = async (upToId: number) => {
    const upTo = rows[upToId - 1] ?? chainStart;
    await store.appendAudit(auditPruned({ removed: upToId, before: 0, upTo }, { by: 'daemon', at: 0 }));
    await store.pruneAudit({ upToId, limit: 100 });
    database.exec('DELETE FROM written; INSERT INTO written SELECT * FROM audit_people');
  };
  await prune(8);
  expect(await breaksAfter('')).toEqual([]);
  expect(await breaksAfter(empty(10))).toEqual([{ kind: 'mentions', id: 12 }]);
  await prune(12);
  expect(await breaksAfter('')).toEqual([]);
  expect(database.prepare('SELECT count(*) AS left FROM audit_people').get()).toEqual({ left: 0 });
});

test.each([
  ['a replaced person', 'UPDATE audit_people SET user_id = 2002', 1],
  ['a removed person', 'DELETE FROM audit_people', 1],
  ['a person removed as if forgotten', 'UPDATE audit_people SET user_id = -5, salt = NULL', 1],
  ['a forgotten person', '', 0],
])('%s is reported unless the person was forgotten', async (_what, sql, breakCount) => {
  const { store, database } = await sixEvents();
  const event = changeEvent(newChange({ rankeeId: 1001 }), 'applied', 0);
  await store.appendAudit(event);
  if (sql === '') {
    const forgetting = { userId: 1001, pseudonym: -5 };
    await store.forgetPerson(forgetting, judgeForgetting(forgetting, { by: 'cli:ann@host', at: 0 }));
  } else database.exec(sql);
  expect(await verifyAudit({ store })).toMatchObject({ rows: sql === '' ? 8 : 7, breakCount });
});
