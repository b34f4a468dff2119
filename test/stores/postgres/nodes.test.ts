import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ServerAddress } from '../../../src/base/net.ts';
import { judgeDeclarations, type NewDeclaration } from '../../../src/core/declared-keys.ts';
import type { ShownNode, Store } from '../../../src/ports/index.ts';
import { engineOf } from '../../../src/stores/engine.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { newestSchema } from '../../../src/stores/postgres/schema/migrate.ts';
import { recordOutcome } from '../../../src/usecases/change/change-record.ts';
import { applied, begin, newChange, newSecret } from '../../contracts/store/samples.ts';
import { codeOf } from '../../support/answers.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestApp } from '../../support/open-test-app.ts';
import { clientOf, onServer, postgresDatabase } from '../../support/postgres-database.ts';
import { send } from '../../support/send.ts';
import { TempDir } from '../../support/temp-dir.ts';

/** Opens two stores on the same database, each with a separate lease clock. */
async function twoNodes() {
  const { address } = await postgresDatabase();
  const open = async () => {
    const time = new ManualClock();
    let sleeps = 0;
    const sleep = (ms: number, signal?: AbortSignal) => {
      sleeps += 1;
      return time.sleep(ms, signal);
    };
    const leaseClock = { monotonic: () => time.monotonic(), sleep };
    const store = await openPostgresStore({ address, clock: new ManualClock(), leaseClock });
    onTestFinished(() => store.close());
    /**
     * Advances the clock second by second. After each second, waits until the node sleeps again, which means that its
     * heartbeat has been answered.
     */
    const pass = async (seconds: number, until: () => Promise<boolean> = async () => false) => {
      for (let second = 1; second <= seconds; second += 1) {
        const before = sleeps;
        await time.advance(1_000);
        await vi.waitUntil(async () => sleeps > before || (await until()), { interval: 2, timeout: 20_000 });
        if (await until()) return second;
      }
      return seconds;
    };
    return { store, time, pass, address };
  };
  return [await open(), await open()] as const;
}

/** Blocks heartbeats until the returned function is called. */
async function blockHeartbeats(address: ServerAddress): Promise<() => Promise<void>> {
  const client = clientOf(address);
  await client.connect();
  await client.query('BEGIN; LOCK rankd.nodes IN SHARE MODE'); // blocks only writes
  return () => client.end();
}

test('once a node has sent no heartbeat for 6 s, another node declares it dead and can take over its changes', async () => {
  const [one, other] = await twoNodes();
  const change = newChange();
  await begin(one.store, change);
  await begin(other.store, newChange({ rankeeId: 8 }));
  const position = await one.store.enqueue(9);
  const holderOfChange = async () =>
    (await other.store.openChanges()).find((open) => open.change.id === change.id)?.holder;

  await other.pass(5);
  expect(await holderOfChange()).toBe('other');
  expect(await other.store.takeOver(change.id)).toBeUndefined();
  expect(await other.store.queueState({ rankeeId: 9 })).toMatchObject({ isNext: false });

  expect(await other.pass(40, async () => (await holderOfChange()) === 'none')).toBeLessThan(40);
  expect(await other.store.queueState({ rankeeId: 9 })).toMatchObject({ isNext: true });
  expect(await other.store.takeOver(change.id)).toStrictEqual(change);
  expect(await one.store.updateChange(change.id, () => expect.fail('it is not its own any more'))).toBeUndefined();
  expect(await one.store.holds(change.id)).toBe(false);
  await one.store.leave(position);
});

test('a node with a heartbeat is never declared dead', async () => {
  const [one, other] = await twoNodes();
  await begin(one.store, newChange());
  await begin(other.store, newChange({ rankeeId: 8 }));
  for (let second = 0; second < 30; second += 1) await Promise.all([one.pass(1), other.pass(1)]);
  expect((await other.store.openChanges()).map(({ holder }) => holder)).toEqual(['other', 'this']);
  expect((await one.store.openChanges()).map(({ holder }) => holder)).toEqual(['this', 'other']);
});

test('a node with no answered heartbeat for 5 s loses its lease and begins no change until one is answered again', async () => {
  const [one] = await twoNodes();
  const change = newChange();
  await begin(one.store, change);
  expect(await one.store.holds(change.id)).toBe(true);
  const left = one.store.leaseLeft();
  const resumeHeartbeats = await blockHeartbeats(one.address);
  await one.time.skip(1_000);
  expect(left()).toBe(4_000);
  await one.time.skip(4_000);
  expect(left()).toBe(0);
  expect(await one.store.holds(change.id)).toBe(false);
  await expect(begin(one.store, newChange({ rankeeId: 8 }))).rejects.toMatchObject({ code: 'store_unavailable' });
  await resumeHeartbeats();
  await one.pass(40, () => one.store.holds(change.id));
  expect(await one.store.holds(change.id)).toBe(true);
  expect(left()).toBeGreaterThan(3_000);
  expect(await begin(one.store, newChange({ rankeeId: 8 }))).toBe(true);
});

test('a node that was declared dead finds out with its next heartbeat, and rejoins', async () => {
  const [one, other] = await twoNodes();
  const change = newChange();
  await begin(one.store, change);
  await begin(other.store, newChange({ rankeeId: 8 }));
  const isFree = async () => (await other.store.openChanges()).some(({ holder }) => holder === 'none');
  await other.pass(40, isFree);
  const left = one.store.leaseLeft();
  await one.pass(40, async () => !(await one.store.holds(change.id)));
  expect(await begin(one.store, newChange({ rankeeId: 9 }))).toBe(true);
  const holders = (await one.store.openChanges()).map(({ change: { rankeeId }, holder }) => [rankeeId, holder]);
  expect(holders).toEqual([
    [7, 'none'],
    [8, 'other'],
    [9, 'this'],
  ]);
  expect([left(), one.store.leaseLeft()() > 0]).toEqual([0, true]); // the dead node's lease has ended for good
  expect(await one.store.takeOver(change.id)).toStrictEqual(change);
  const ended = await recordOutcome({ store: one.store, clock: one.time }, change.id, applied);
  expect(ended).toMatchObject({ state: 'applied' });
});

test('a change whose node has no row counts as held for the usual 6 s', async () => {
  const { address } = await postgresDatabase();
  const clock = new ManualClock();
  const time = new ManualClock();
  await using gone = new AsyncDisposableStack();
  const one = gone.adopt(await openPostgresStore({ address, clock, leaseClock: new ManualClock() }), (store) =>
    store.close(),
  );
  const other = gone.adopt(await openPostgresStore({ address, clock, leaseClock: time }), (store) => store.close());
  const change = newChange();
  await begin(one, change);
  await forgetNodes(address);
  expect(await other.openChanges()).toMatchObject([{ holder: 'other' }]);
  await begin(other, newChange({ rankeeId: 8 }));
  await expect
    .poll(async () => {
      await time.advance(1_000);
      return (await other.openChanges()).map(({ holder }) => holder);
    })
    .toEqual(['none', 'this']);
  expect(time.monotonic()).toBeGreaterThanOrEqual(6_000);
});

test('the row of an ended node is removed after a day, unless an open change refers to it', async () => {
  const { address } = await postgresDatabase();
  const clock = new ManualClock();
  const run = async (work: (store: Store) => Promise<unknown>) => {
    const store = await openPostgresStore({ address, clock });
    await work(store);
    await store.close();
  };
  await run((store) => store.enqueue(7));
  await run((store) => begin(store, newChange()));
  await clock.skip(2 * 86_400_000);
  await run((store) => store.enqueue(7));
  expect(await onServer(address, 'SELECT id FROM rankd.nodes')).toHaveLength(2);
});

const status = {
  ...{
    version: '1.0.0',
    url: 'http://a:1',
    group: 'a group',
    isDraining: false,
    uptimeSeconds: 3,
    requestsInFlight: 0,
  },
  ...{ callsWaiting: 0, budget: [], credentialProblem: null, serverAheadMs: 0, settings: {} },
};

/** Returns a daemon that by default ignores commands and notifications. */
function daemonNamed(name: string, rest: Partial<ShownNode> = {}): ShownNode {
  const noHandlers = { onNodesChanged: () => undefined, carryOut: async () => undefined };
  return { name, status: () => status, ...noHandlers, ...rest };
}

test('a registered daemon is listed with its current status until it is closed', async () => {
  const { address } = await postgresDatabase();
  const [one, other] = await Promise.all([1, 2].map(() => openPostgresStore({ address, clock: new ManualClock() })));
  await other?.enqueue(7); // registers a node that is not a daemon
  let isDraining = false;
  await one?.nodes?.showNode(daemonNamed('east', { status: () => ({ ...status, isDraining }) }));
  expect(await other?.nodes?.listNodes()).toMatchObject([{ name: 'east', state: 'serving', status }]);
  isDraining = true;
  await expect.poll(() => other?.nodes?.listNodes()).toMatchObject([{ name: 'east', state: 'draining' }]);
  await one?.close();
  expect(await other?.nodes?.listNodes()).toEqual([]);
  await other?.close();
});

test('a command to a daemon runs once, on that daemon, and its sender gets the outcome', async () => {
  const { address } = await postgresDatabase();
  const open = () => openPostgresStore({ address, clock: new ManualClock() });
  const [east, west, desk] = await Promise.all([open(), open(), open()]);
  const carriedOut: string[] = [];
  const taking = (name: string) =>
    daemonNamed(name, {
      carryOut: async ({ does, by }) => {
        carriedOut.push(`${name}: ${does} for ${by}`);
        return { state: 'applied', by: 'a\0b' };
      },
    });
  await Promise.all([east.nodes?.showNode(taking('east')), west.nodes?.showNode(taking('west'))]);
  const id = (await desk.nodes?.listNodes())?.[0]?.id ?? '';
  const commandId = (await desk.nodes?.askNode(id, { does: 'relearn', by: 'cli:ann@desk' })) ?? '';
  await expect.poll(() => desk.nodes?.outcomeOf(commandId)).toEqual({ outcome: { state: 'applied', by: 'a\0b' } });
  expect(carriedOut).toEqual(['east: relearn for cli:ann@desk']);
  await Promise.all([east.close(), west.close(), desk.close()]);
});

test('a daemon that others declared dead rejoins and is ready again', async () => {
  const { address } = await postgresDatabase();
  const time = new ManualClock();
  const store = await openPostgresStore({ address, clock: new ManualClock(), leaseClock: time });
  await store.nodes?.showNode(daemonNamed('east'));
  const [before] = (await store.nodes?.listNodes()) ?? [];
  await onServer(address, `UPDATE rankd.nodes SET ended_by = 'node_x'`);
  expect(await store.nodes?.listNodes()).toMatchObject([{ state: 'ended' }]);
  await expect
    .poll(async () => {
      await time.advance(1_000);
      return store.nodes?.listNodes();
    })
    .toMatchObject([{ name: 'east', state: 'serving', id: expect.not.stringContaining(before?.id ?? '') }]);
  await store.pingWrites();
  await store.close();
});

describe('keys that several nodes declare', () => {
  const declaration = (name: string, rest: Partial<NewDeclaration> = {}): NewDeclaration => ({
    ...{ id: `key_${name}`, name, hash: newSecret(name).hash, mode: 'live', scopes: ['verify'], rules: {} },
    ...{ declaredIn: 'rankd.yaml:3', whitelist: { placeIds: [42], declaredIn: 'rankd.yaml:5' } },
    ...rest,
  });

  async function nodes() {
    const { address } = await postgresDatabase();
    const clock = new ManualClock();
    const open = async (name: string) => {
      const store = await openPostgresStore({ address, clock });
      onTestFinished(() => store.close());
      await store.nodes?.showNode(daemonNamed(name));
      const declare = (...declared: NewDeclaration[]) =>
        store.declareKeys(declared, judgeDeclarations(declared, { by: 'daemon', at: clock.now() }));
      return { store, declare };
    };
    const [east, west] = [await open('east'), await open('west')];
    const key = async (name: string) => {
      const { scopes, revokedAt } = (await east.store.findKey(name)) ?? {};
      return revokedAt === undefined ? scopes?.join() : 'revoked';
    };
    const audited = async () => (await east.store.listAudit({ limit: 100 })).length;
    return { east, west, open, key, audited };
  }

  test('apply while any node declares them; a daemon that drops one learns which nodes still declare it', async () => {
    const { east, west, key } = await nodes();
    await east.declare(declaration('main'), declaration('other'));
    await west.declare(declaration('main'));
    expect(await key('other')).toBe('verify');
    expect(await east.declare()).toEqual({ clashes: [], stillDeclared: [{ name: 'main', nodes: ['west'] }] });
    expect([await key('main'), await key('other')]).toEqual(['verify', 'revoked']);
    expect(await west.declare()).toEqual({ clashes: [], stillDeclared: [] });
    expect(await key('main')).toBe('revoked');
  });

  test('follow their newest declaration until its node ends; repeating a declaration does not make it newer', async () => {
    const { east, west, open, key, audited } = await nodes();
    const older = declaration('main');
    const newer = declaration('main', { scopes: ['rank'], id: 'key_x' });
    await east.declare(older);
    await west.declare(newer);
    expect(await key('main')).toBe('rank');
    const before = await audited();
    await east.declare({ ...older, id: 'key_y', declaredIn: 'rankd.yaml:99' });
    await west.declare(newer);
    expect(await key('main')).toBe('rank');
    expect(await audited()).toBe(before);
    await west.store.close();
    await east.declare(older);
    expect(await key('main')).toBe('verify');
    const again = await open('west');
    await again.declare(newer);
    expect(await key('main')).toBe('rank');
  });

  test('a secret that a node declares for a different key moves only once', async () => {
    const { east, west, key, audited } = await nodes();
    const { hash = '' } = declaration('main');
    await east.declare(declaration('main'));
    await west.declare(declaration('renamed', { hash }));
    expect([await key('main'), await key('renamed')]).toEqual(['revoked', 'verify']);
    const before = await audited();
    await east.declare(declaration('main'));
    await west.declare(declaration('renamed', { hash }));
    expect(await audited()).toBe(before);
  });

  test('a node that rejoins has the same declarations as before', async () => {
    const { address } = await postgresDatabase();
    const [time, clock] = [new ManualClock(), new ManualClock()];
    const store = await openPostgresStore({ address, clock, leaseClock: time });
    onTestFinished(() => store.close());
    const changed = vi.fn();
    await store.nodes?.showNode(daemonNamed('east', { onNodesChanged: changed }));
    const declared = [declaration('main')];
    await store.declareKeys(declared, judgeDeclarations(declared, { by: 'daemon', at: clock.now() }));
    await onServer(address, `UPDATE rankd.nodes SET ended_by = 'node_x'`);
    await expect
      .poll(async () => {
        await time.advance(1_000);
        return changed.mock.calls.length;
      })
      .toBeGreaterThan(0);
    const openDeclarations =
      'SELECT d.name FROM rankd.declarations d JOIN rankd.nodes n ON n.id = d.node WHERE n.ended_by IS NULL';
    expect(await onServer(address, openDeclarations)).toEqual([{ name: 'main' }]);
  });
});

test('when a daemon ends, the others are notified', async () => {
  const { address } = await postgresDatabase();
  const open = () => openPostgresStore({ address, clock: new ManualClock() });
  const [east, west] = await Promise.all([open(), open()]);
  const changed = vi.fn();
  await west.nodes?.showNode(daemonNamed('west'));
  await east.nodes?.showNode(daemonNamed('east', { onNodesChanged: changed }));
  await west.close();
  await expect.poll(() => changed.mock.calls.length).toBe(1);
  await east.close();
});

test('a daemon that starts in the directory of a dead one ends the dead node at once', async () => {
  const { address } = await postgresDatabase();
  using dir = new TempDir();
  const open = () =>
    engineOf({ dataDir: dir.path, clock: new ManualClock(), server: address }).openStore({ isServed: true });
  const [died, desk] = [await open(), await openPostgresStore({ address, clock: new ManualClock() })];
  const change = newChange();
  await begin(died, change);
  const holder = async () => (await desk.openChanges())[0]?.holder;
  expect(await holder()).toBe('other');
  const next = await open();
  await next.nodes?.showNode(daemonNamed('east'));
  expect(await holder()).toBe('none');
  expect(await next.takeOver(change.id)).toStrictEqual(change);
  await Promise.all([died, desk, next].map((store) => store.close()));
});

test('a task belongs to the first node that asks for it, until that node ends', async () => {
  const { address } = await postgresDatabase();
  const open = () => openPostgresStore({ address, clock: new ManualClock() });
  const [one, other] = await Promise.all([open(), open()]);
  expect(await one.nodes?.hasTask('pruning')).toBe(true);
  expect(await other.nodes?.hasTask('pruning')).toBe(false);
  expect(await other.nodes?.hasTask('webhooks')).toBe(true);
  expect(await one.nodes?.hasTask('pruning')).toBe(true);
  await one.close();
  expect(await other.nodes?.hasTask('pruning')).toBe(true);
  await other.close();
});

test('a daemon is not ready without a lease, or once a newer rankd has migrated its database', async () => {
  const { address } = await postgresDatabase();
  const time = new ManualClock();
  const store = await openPostgresStore({ address, clock: new ManualClock(), leaseClock: time });
  await store.nodes?.showNode(daemonNamed('east'));
  await using app = await openTestApp({ store });
  const readiness = async () => codeOf(await send(`${app.url}/readyz`, { method: 'GET' }));
  expect(await readiness()).toBeUndefined();
  const resumeHeartbeats = await blockHeartbeats(address);
  await time.skip(5_000);
  expect(await readiness()).toBe('store_unavailable');
  await resumeHeartbeats();
  await expect
    .poll(async () => {
      await time.advance(1_000);
      return readiness();
    })
    .toBeUndefined();
  onTestFinished(async () => {
    // Restores the original schema, so that another test can reuse this database.
    await onServer(address, `DELETE FROM rankd.schema_steps WHERE version > ${newestSchema}`);
  });
  // Adds a newer schema version that this rankd can still use.
  await onServer(address, `INSERT INTO rankd.schema_steps VALUES (${newestSchema + 1}, 1, '2.0.0', 0)`);
  await time.advance(1_000);
  await store.nodes?.showNode(daemonNamed('east'));
  expect(store.schemaTooNew()).toBeUndefined();
  await onServer(
    address,
    `INSERT INTO rankd.schema_steps VALUES (${newestSchema + 2}, ${newestSchema + 2}, '3.0.0', 0)`,
  );
  await expect
    .poll(async () => {
      await time.advance(1_000);
      return readiness();
    })
    .toBe('store_unavailable');
  expect(store.schemaTooNew()).toMatchObject({ code: 'schema_newer' });
});

test.each([
  ['missing', '', 0, { fromId: 2, toId: 3 }],
  [
    'replaced by others',
    `INSERT INTO rankd.audit_events (id, at, done_by, action, subject, detail, hash)
     SELECT id, at, done_by, action, 'other', detail, sha256(hash) FROM lost;`,
    0,
    { fromId: 3, toId: 3 },
  ],
  ['replaced by its own later ones', '', 4, { fromId: 3, toId: 3 }],
])(
  'a daemon whose last events are %s after a failover reports the lost range and drops the budget records',
  async (_what, instead, writes, range) => {
    const { address } = await postgresDatabase();
    const time = new ManualClock();
    const store = await openPostgresStore({ address, clock: new ManualClock(), leaseClock: time });
    onTestFinished(() => store.close());
    const lost: unknown[] = [];
    await store.nodes?.showNode({ ...daemonNamed('east'), onLost: (found) => void lost.push(found) });
    const append = (id: number) =>
      store.appendAudit({ at: 0, by: 'cli:ann@host', action: 'config.reload', subject: String(id), detail: {} });
    for (let id = 1; id <= 3; id += 1) await append(id);
    const name = { operation: 'assign', open: () => ({ count: 0 }) };
    await store.budgetLedger('a'.repeat(64))?.change(name, () => undefined);
    const beat = async () => {
      await time.advance(1_000);
      return lost.length;
    };
    await beat();
    expect(lost).toEqual([]);
    await onServer(
      address,
      `SET session_replication_role = replica;
     CREATE TEMP TABLE lost AS SELECT * FROM rankd.audit_events WHERE id > 1;
     DELETE FROM rankd.audit_events WHERE id > 1;
     ${instead}
     UPDATE rankd.audit_head SET (last_id, hash) = (SELECT id, hash FROM rankd.audit_events ORDER BY id DESC LIMIT 1);
     SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'rankd'`,
    );
    const isAppended = (id: number) =>
      append(id).then(
        () => true,
        () => false,
      );
    for (let id = 0; id < writes; id += 1) await expect.poll(() => isAppended(id), { timeout: 20_000 }).toBe(true);
    await expect.poll(beat, { timeout: 20_000 }).toBe(1);
    expect(lost).toEqual([range]);
    expect(await onServer(address, 'SELECT operation FROM rankd.platform_budget')).toEqual([]);
    await beat();
    await beat();
    expect(lost).toHaveLength(1);
  },
);

async function forgetNodes(address: ServerAddress): Promise<void> {
  await onServer(address, 'DELETE FROM rankd.nodes');
}
