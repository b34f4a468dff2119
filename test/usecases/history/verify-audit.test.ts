import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { chainStart, linkHash } from '../../../src/core/audit.ts';
import { changeEvent } from '../../../src/core/events.ts';
import { judgeForgetting } from '../../../src/core/forgetting.ts';
import { engineOf } from '../../../src/stores/engine.ts';
import { verifyAudit } from '../../../src/usecases/history/verify-audit.ts';
import { newChange, operate } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** A store with six events, and the database file for somebody who has it in hand. */
async function sixEvents() {
  const dataDir = tempDir();
  const store = await engineOf({ dataDir, clock: new ManualClock() }).openStore();
  const hand = new Database(join(dataDir, 'rankd.db'));
  onTestFinished(async () => {
    hand.close();
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
  return { store, hand };
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
  ['a row taken out', 'DELETE FROM audit_events WHERE id = 3', [{ kind: 'missing', id: 3, toId: 3 }]],
  ['the beginning taken out', 'DELETE FROM audit_events WHERE id < 4', [{ kind: 'missing', id: 1, toId: 3 }]],
  ['the end cut off', 'DELETE FROM audit_events WHERE id > 4', [{ kind: 'missing', id: 5, toId: 6 }]],
  ['everything taken out', 'DELETE FROM audit_events', [{ kind: 'missing', id: 1, toId: 6 }]],
  [
    'a row taken out and the gap closed',
    'DELETE FROM audit_events WHERE id = 3; UPDATE audit_events SET id = id - 1 WHERE id > 3; UPDATE sqlite_sequence SET seq = 5',
    [
      { kind: 'changed', id: 3 },
      { kind: 'changed', id: 4 },
      { kind: 'changed', id: 5 },
    ],
  ],
  [
    'two rows changed round',
    'UPDATE audit_events SET id = 99 WHERE id = 2; UPDATE audit_events SET id = 2 WHERE id = 3; UPDATE audit_events SET id = 3 WHERE id = 99',
    [
      { kind: 'changed', id: 2 },
      { kind: 'changed', id: 3 },
      { kind: 'changed', id: 4 },
    ],
  ],
  [
    'a row put in',
    'INSERT INTO audit_events SELECT 7, at, done_by, action, subject, detail, hash FROM audit_events WHERE id = 6',
    [{ kind: 'changed', id: 7 }],
  ],
])('%s is told by its number', async (_, damage, breaks) => {
  const { store, hand } = await sixEvents();
  hand.exec(unlock + damage);
  expect(await verifyAudit({ store })).toMatchObject({ breakCount: breaks.length, breaks });
});

test('an untouched audit is passed, and every hash in it counts as a noted head', async () => {
  const { store } = await sixEvents();
  const { rows } = await store.auditChain({ afterId: 0, limit: 9 });
  for (const { hash } of rows) {
    expect(await verifyAudit({ store }, { notedHead: hash })).toMatchObject({
      rows: 6,
      breakCount: 0,
      hasNotedHead: true,
    });
  }
  expect(
    await verifyAudit(
      { store },
      { notedHead: linkHash('', { id: 1, at: 0, by: '', action: '', subject: '', detail: '' }) },
    ),
  ).toMatchObject({ hasNotedHead: false });
});

test('events written after the end was cut off do not hide that', async () => {
  const { store, hand } = await sixEvents();
  hand.exec(`${unlock} DELETE FROM audit_events WHERE id > 4`);
  await operate({ store }).appendAudit({ by: 'daemon', action: 'x', subject: 'y', detail: {} });
  expect(await verifyAudit({ store })).toMatchObject({ breaks: [{ kind: 'missing', id: 5, toId: 6 }] });
});

test('a thief who works the whole chain out anew is found by a noted head, and only by it', async () => {
  const { store, hand } = await sixEvents();
  const { head } = await verifyAudit({ store });
  const { rows } = await store.auditChain({ afterId: 0, limit: 9 });
  hand.exec(unlock);
  let { hash } = chainStart;
  for (const { hash: _, ...row } of rows) {
    const forged = { ...row, by: 'cli:bob@host' };
    hash = linkHash(hash, forged);
    hand
      .prepare('UPDATE audit_events SET done_by = ?, hash = ? WHERE id = ?')
      .run(forged.by, Buffer.from(hash, 'hex'), forged.id);
  }
  expect(await verifyAudit({ store })).toMatchObject({ breakCount: 0 });
  expect(await verifyAudit({ store }, { notedHead: head.hash })).toMatchObject({ breakCount: 0, hasNotedHead: false });
});

test.each([
  ['another person put in', 'UPDATE audit_people SET user_id = 2002', 1],
  ['a person taken out', 'DELETE FROM audit_people', 1],
  ['a person taken out as if forgotten', 'UPDATE audit_people SET user_id = -5, salt = NULL', 1],
  ['a person forgotten', '', 0],
])('%s: found if it was not by forgetting', async (_what, sql, breakCount) => {
  const { store, hand } = await sixEvents();
  const event = changeEvent(newChange({ rankeeId: 1001 }), 'applied', 0);
  await store.appendAudit(event);
  if (sql === '') {
    const forgetting = { userId: 1001, pseudonym: -5 };
    await store.forgetPerson(forgetting, judgeForgetting(forgetting, { by: 'cli:ann@host', at: 0 }));
  } else hand.exec(sql);
  expect(await verifyAudit({ store })).toMatchObject({ rows: sql === '' ? 8 : 7, breakCount });
});
