import { connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { ServerAddress } from '../../../src/base/net.ts';
import { judgeWorkspace } from '../../../src/core/key-changes.ts';
import type { Store } from '../../../src/ports/index.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { begin, lookUp, newChange, newKey, operate, operator } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { clientOf, postgresDatabase } from '../../support/postgres-database.ts';

/**
 * A fault during a COMMIT: the connection breaks either before the response or before the server receives the COMMIT.
 */
type Fault = 'lost answer' | 'lost commit' | undefined;

/** Starts a fault-injecting proxy between rankd and the server. */
async function startFaultProxy(address: ServerAddress) {
  let fault: Fault;
  let cuts = 0;
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const { host, port } = address;
    const server = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        for (const end of [client, server]) end.destroy();
      });
    }
    let isDroppingAnswers = false;
    client.on('data', (chunk) => {
      const isTarget = fault !== undefined && chunk.includes('COMMIT\0');
      if (isTarget) cuts += 1;
      if (isTarget && fault === 'lost commit') client.destroy();
      else server.write(chunk);
      isDroppingAnswers ||= isTarget;
      if (isTarget) fault = undefined;
    });
    server.on('data', (chunk) => {
      if (!isDroppingAnswers) client.write(chunk);
      else if (chunk.includes('COMMIT\0')) client.destroy();
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    proxy.close();
    cut();
  });
  return {
    address: { ...address, host: '127.0.0.1', port: (proxy.address() as { port: number }).port },
    cut,
    get cuts() {
      return cuts;
    },
    break(next: Fault) {
      fault = next;
    },
  };
}

async function openThrough() {
  const { address } = await postgresDatabase();
  const line = await startFaultProxy(address);
  const clock = new ManualClock();
  const store = await openPostgresStore({ address: line.address, clock });
  const other = await openPostgresStore({ address, clock });
  onTestFinished(async () => void (await Promise.all([store.close(), other.close()])));
  return { line, store, other, clock, address };
}

/** Terminates the sessions that are waiting for a lock. */
const endWaiting = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;

const plan = (store: Store) =>
  store.updateWorkspace(judgeWorkspace({ plan: 'free' }, { by: operator, at: Date.UTC(2026, 0, 1) }));

test('a commit whose response is lost is verified and succeeds', async () => {
  const { line, store, other } = await openThrough();
  line.break('lost answer');
  expect(await plan(store)).toMatchObject({ plan: 'free' });
  expect(line.cuts).toBe(1);
  expect(await other.getWorkspace()).toMatchObject({ plan: 'free' });
  line.break('lost answer');
  const change = newChange();
  expect(await begin(store, change)).toBe(true);
  expect(await other.findChange(change.id)).toStrictEqual(change);
  expect(line.cuts).toBe(2);
  expect((await other.auditChain({ afterId: 0, limit: 9 })).rows).toHaveLength(2);
});

test('a commit that never reached the server fails, and nothing is stored', async () => {
  const { line, store, other } = await openThrough();
  line.break('lost commit');
  await expect(plan(store)).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(line.cuts).toBe(1);
  expect(await other.getWorkspace()).toMatchObject({ plan: 'top' });
  expect(await plan(store)).toMatchObject({ plan: 'free' });
});

test('broken connections are replaced, and the key cache is cleared', async () => {
  const { line, store, other, clock } = await openThrough();
  await operate({ store: other, clock }).createKey(newKey('game'), operator);
  expect(await lookUp(store, 'game')).toMatchObject({ key: { name: 'game' } });
  line.cut();
  await expect
    .poll(() =>
      store.ping().then(
        () => 'there',
        () => 'gone',
      ),
    )
    .toBe('there');
  await operate({ store: other, clock }).revokeKey('key_game', operator);
  expect(await lookUp(store, 'game')).toMatchObject({ key: { revokedAt: expect.any(Number) } });
  await plan(store);
});

test('a read whose connection breaks is retried on a new one', async () => {
  const { store, address } = await openThrough();
  const change = newChange();
  await begin(store, change);
  const admin = clientOf(address);
  const watcher = clientOf(address);
  await Promise.all([admin.connect(), watcher.connect()]);
  await admin.query('BEGIN; LOCK TABLE rankd.rank_changes IN ACCESS EXCLUSIVE MODE');
  const found = store.findChange(change.id);
  await expect.poll(async () => (await watcher.query(endWaiting)).rowCount).toBe(1);
  await admin.query('ROLLBACK');
  expect(await found).toStrictEqual(change);
  await Promise.all([admin.end(), watcher.end()]);
});

test('if the server ends a session in the middle of a transaction, the transaction is rolled back', async () => {
  const { store, other, address } = await openThrough();
  const admin = clientOf(address);
  const watcher = clientOf(address);
  await admin.connect();
  await watcher.connect();
  await admin.query('BEGIN; SELECT 1 FROM rankd.audit_head FOR UPDATE');
  const written = expect(plan(store)).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect.poll(async () => (await watcher.query(endWaiting)).rowCount).toBeGreaterThan(0);
  await written;
  await admin.query('ROLLBACK');
  await Promise.all([admin.end(), watcher.end()]);
  expect(await other.getWorkspace()).toMatchObject({ plan: 'top' });
  expect(await plan(store)).toMatchObject({ plan: 'free' });
});

test('no statement can edit, delete, insert or truncate audit rows, or change the anchor', async () => {
  const { store, address } = await openThrough();
  await plan(store);
  const client = clientOf(address);
  await client.connect();
  for (const sql of [
    `UPDATE rankd.audit_events SET detail = '{}'`,
    'DELETE FROM rankd.audit_events',
    'TRUNCATE rankd.audit_events CASCADE',
    `INSERT INTO rankd.audit_events SELECT 0, at, done_by, action, subject, key_id, detail, hash FROM rankd.audit_events`,
    'UPDATE rankd.audit_anchor SET last_id = 9',
    'DELETE FROM rankd.audit_anchor',
    'DELETE FROM rankd.audit_head',
  ])
    await expect(client.query(sql), sql).rejects.toMatchObject({ code: 'P0001' });
  await client.end();
});
