import { connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import type { ServerAddress } from '../../../src/base/net.ts';
import { Database } from '../../../src/stores/postgres/engine/database.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { applied, begin, finish, newChange, newKey, newSecret, operate } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestApp } from '../../support/open-test-app.ts';
import { onServer, postgresDatabase } from '../../support/postgres-database.ts';

/** Starts a proxy that records the statements sent to the server. */
async function startRecordingProxy(address: ServerAddress) {
  const chunks: string[] = [];
  const sockets = new Set<Socket>();
  let most = 0;
  const proxy = createServer((client) => {
    const { host, port } = address;
    const server = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    sockets.add(client);
    most = Math.max(most, sockets.size);
    client.on('data', (chunk) => chunks.push(chunk.toString('latin1')));
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) socket.on('error', () => undefined);
    client.on('close', () => sockets.delete(client));
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  return {
    address: { ...address, host: '127.0.0.1', port: (proxy.address() as { port: number }).port },
    sent: () => chunks.join(''),
    most: () => most,
  };
}

test('a daemon has at most five connections and no session state, so that a pooler can share them', async () => {
  const { address } = await postgresDatabase();
  const line = await startRecordingProxy(address);
  const time = new ManualClock();
  const store = await openPostgresStore({ address: line.address, clock: systemClock, leaseClock: time });
  onTestFinished(() => store.close());
  await using app = await openTestApp({ store });
  const key = await app.createKey();
  const answers = await Promise.all([2001, 2002, 2003, 2003, 2003].map((userId) => app.rank(key, { userId })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  await store.auditChain({ afterId: 0, limit: 1 });
  await time.advance(1_000); // triggers a heartbeat
  await expect.poll(() => line.most()).toBe(5);
  expect(line.sent()).toContain('SET LOCAL'); // proves that the proxy records statements
  expect(line.sent()).not.toMatch(/[\0;]\s*SET (?!LOCAL )|Q\0[\s\S]{3}SET (?!LOCAL )/);
  expect(line.sent()).not.toMatch(/pg_(try_)?advisory_lock|CREATE TEMP|DECLARE |set_config\([^)]*false\)/);
});

test('joining a member queue waits for uncommitted positions in the same queue', async () => {
  const { address } = await postgresDatabase();
  const store = await openPostgresStore({ address, clock: new ManualClock() });
  const other = new Database(address);
  onTestFinished(async () => void (await Promise.all([store.close(), other.close()])));
  await store.enqueue(8); // registers the store's node
  let position: string | undefined;
  let entered: Promise<unknown> | undefined;
  await other.underLock(async (transaction) => {
    await transaction.get('SELECT pg_advisory_xact_lock(7)'); // as another node would
    await transaction.get(`INSERT INTO rankd.member_queue (rankee_id, node) VALUES (7, 'node_a')`);
    entered = store.enqueue(7).then((taken) => {
      position = taken;
    });
    const waiting = `SELECT 1 AS "isWaiting" FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = 7`;
    await expect.poll(() => onServer(address, waiting)).toHaveLength(1);
    expect(position).toBeUndefined();
  });
  await entered;
  expect(await store.queueState({ rankeeId: 7, position: position ?? '' })).toMatchObject({ isNext: false });
});

test('a change is synced to disk whatever the server’s settings; a heartbeat is not', async () => {
  const { address } = await postgresDatabase();
  const seen = `
    CREATE SCHEMA seen; CREATE TABLE seen.commits (of_table text, setting text);
    CREATE FUNCTION seen.note() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO seen.commits VALUES (TG_TABLE_NAME, current_setting('synchronous_commit')); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER seen AFTER INSERT OR UPDATE ON rankd.rank_changes
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION seen.note();
    CREATE CONSTRAINT TRIGGER seen AFTER INSERT OR UPDATE ON rankd.nodes
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION seen.note();`;
  await onServer(address, seen);
  const setTo = (value: string) =>
    onServer(address, `ALTER DATABASE "${address.database}" SET synchronous_commit = ${value}`);
  onTestFinished(async () => {
    await onServer(address, `DROP SCHEMA seen CASCADE; ALTER DATABASE "${address.database}" RESET synchronous_commit`);
  });
  for (const setting of ['off', 'on']) {
    await setTo(setting);
    const time = new ManualClock();
    const clock = new ManualClock();
    const store = await openPostgresStore({ address, clock, leaseClock: time });
    onTestFinished(() => store.close());
    const change = newChange({ rankeeId: setting.length });
    expect(await begin(store, change)).toBe(true);
    await finish({ store, clock }, change.id, applied);
    const commits = async (of: string) =>
      (await onServer(address, `SELECT setting FROM seen.commits WHERE of_table = '${of}' ORDER BY ctid`)).map(
        (row) => row['setting'],
      );
    expect(new Set(await commits('rank_changes'))).toEqual(new Set(['on']));
    expect(await commits('nodes')).toEqual([setting]); // registration uses the server's setting
    await time.advance(1_000);
    await expect.poll(() => commits('nodes')).toEqual([setting, 'off']);
    await onServer(address, 'DELETE FROM seen.commits');
    await store.close();
    await onServer(address, 'DELETE FROM seen.commits');
  }
});

test('each write to keys, secrets, places and the workspace increments the access version; a key use does not', async () => {
  const { address } = await postgresDatabase();
  const store = await openPostgresStore({ address, clock: new ManualClock() });
  onTestFinished(() => store.close());
  const does = operate({ store });
  const version = async () =>
    Number((await onServer(address, 'SELECT version FROM rankd.access_version'))[0]?.['version']);
  const versionsAdded = async (write: () => Promise<unknown>) => {
    const before = await version();
    await write();
    return (await version()) - before;
  };
  const place = { keyId: 'key_a', placeIds: [42] };
  const writes = [
    () => does.createKey(newKey('a'), 'x'),
    () => does.rotateKey({ keyId: 'key_a', secret: newSecret('b'), oldExpiresAt: 9_000_000_000_000 }, 'x'),
    () => does.pauseKey({ keyId: 'key_a', paused: true, reason: 'x' }, 'x'),
    () => does.addEntries(place, 'x'),
    () => does.setEntriesActive({ ...place, active: false }, 'x'),
    () => does.removeEntries(place, 'x'),
    () => does.updateWorkspace({ active: false }, 'x'),
    () => does.revokeKey('key_a', 'x'),
  ];
  for (const write of writes) expect(await versionsAdded(write)).toBeGreaterThan(0);
  const [secret] = await onServer(address, 'SELECT seq::text AS id FROM rankd.key_secrets');
  const use = { secretId: String(secret?.['id']), placeId: 42, at: Date.UTC(2026, 0, 1) };
  expect(await versionsAdded(() => store.recordKeyUses([use]))).toBe(0);
  expect(await onServer(address, 'SELECT 1 FROM rankd.secret_uses')).toHaveLength(1);
});

test('a number that JavaScript can’t represent is rejected, not rounded, even in a list', async () => {
  const { address } = await postgresDatabase();
  const db = new Database(address);
  onTestFinished(() => db.close());
  const largest = 2 ** 53 - 1;
  expect(await db.get('SELECT 9007199254740991 AS one, ARRAY[-9007199254740991] AS many')).toEqual({
    ...{ one: largest, many: [-largest] },
  });
  for (const sql of ['SELECT 9007199254740993 AS one', 'SELECT ARRAY[9007199254740993] AS many'])
    await expect(db.get(sql)).rejects.toMatchObject({
      code: 'internal',
      cause: expect.objectContaining({ message: '9007199254740993 is not a safe integer' }),
    });
  expect(await db.get('SELECT 1::bigint AS one')).toEqual({ one: 1 });
});
