import pg from 'pg';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { ServerAddress } from '../../../src/base/server-address.ts';
import type { ShownNode, Store } from '../../../src/ports/index.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { keepOutcome } from '../../../src/usecases/change/change-outcome.ts';
import { applied, begin, newChange } from '../../contracts/store/samples.ts';
import { codeOf } from '../../support/answers.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestApp } from '../../support/open-test-app.ts';
import { postgresDatabase } from '../../support/postgres-database.ts';
import { send } from '../../support/send.ts';

/** Two handles, each with a time of its own. */
async function twoNodes() {
  const { address } = await postgresDatabase();
  const open = async () => {
    const time = new ManualClock();
    let sleeps = 0;
    const sleep = (ms: number, signal?: AbortSignal) => {
      sleeps += 1;
      return time.sleep(ms, signal);
    };
    const beating = { monotonic: () => time.monotonic(), sleep };
    const store = await openPostgresStore({ address, clock: new ManualClock(), beating });
    onTestFinished(() => store.close());
    /** Lets seconds pass one by one, each with a beat and its answer: then the node sleeps again, unless it was ended. */
    const pass = async (seconds: number, until: () => Promise<boolean> = async () => false) => {
      for (let second = 1; second <= seconds; second += 1) {
        const before = sleeps;
        await time.advance(1_000);
        await vi.waitUntil(async () => sleeps > before || (await until()), { interval: 2, timeout: 20_000 });
        if (await until()) return second;
      }
      return seconds;
    };
    return { store, time, pass };
  };
  return [await open(), await open()] as const;
}

test('a node whose number stands still is ended by another after 6 s of that one, and what it held is taken over', async () => {
  const [one, other] = await twoNodes();
  const change = newChange();
  await begin(one.store, change);
  await begin(other.store, newChange({ rankeeId: 8 }));
  const position = await one.store.enqueue(9);
  const holderOfIt = async () => (await other.store.openChanges()).find((open) => open.change.id === change.id)?.holder;

  await other.pass(5);
  expect(await holderOfIt()).toBe('other');
  expect(await other.store.takeOver(change.id)).toBeUndefined();
  expect(await other.store.queueStanding({ rankeeId: 9 })).toMatchObject({ isNext: false });

  expect(await other.pass(40, async () => (await holderOfIt()) === 'none')).toBeLessThan(40);
  expect(await other.store.queueStanding({ rankeeId: 9 })).toMatchObject({ isNext: true });
  expect(await other.store.takeOver(change.id)).toStrictEqual(change);
  expect(await one.store.updateChange(change.id, () => expect.fail('it is not its own any more'))).toBeUndefined();
  expect(await one.store.holds(change.id)).toBe(false);
  await one.store.leave(position);
});

test('a node that beats is never ended, however long others look', async () => {
  const [one, other] = await twoNodes();
  await begin(one.store, newChange());
  await begin(other.store, newChange({ rankeeId: 8 }));
  for (let second = 0; second < 30; second += 1) await Promise.all([one.pass(1), other.pass(1)]);
  expect((await other.store.openChanges()).map(({ holder }) => holder)).toEqual(['other', 'this']);
  expect((await one.store.openChanges()).map(({ holder }) => holder)).toEqual(['this', 'other']);
});

test('without an answered beat for 5 s, a node neither holds nor begins anything; with the next one it goes on', async () => {
  const [one] = await twoNodes();
  const change = newChange();
  await begin(one.store, change);
  expect(await one.store.holds(change.id)).toBe(true);
  await one.time.skip(5_000);
  expect(await one.store.holds(change.id)).toBe(false);
  await expect(begin(one.store, newChange({ rankeeId: 8 }))).rejects.toMatchObject({ code: 'store_unavailable' });
  await one.pass(40, () => one.store.holds(change.id));
  expect(await one.store.holds(change.id)).toBe(true);
  expect(await begin(one.store, newChange({ rankeeId: 8 }))).toBe(true);
});

test('a node that was ended finds out with its next beat, and joins anew', async () => {
  const [one, other] = await twoNodes();
  const change = newChange();
  await begin(one.store, change);
  await begin(other.store, newChange({ rankeeId: 8 }));
  const isFree = async () => (await other.store.openChanges()).some(({ holder }) => holder === 'none');
  await other.pass(40, isFree);
  await one.pass(40, async () => !(await one.store.holds(change.id)));
  expect(await begin(one.store, newChange({ rankeeId: 9 }))).toBe(true);
  const holders = (await one.store.openChanges()).map(({ change: { rankeeId }, holder }) => [rankeeId, holder]);
  expect(holders).toEqual([
    [7, 'none'],
    [8, 'other'],
    [9, 'this'],
  ]);
  expect(await one.store.takeOver(change.id)).toStrictEqual(change);
  const ended = await keepOutcome({ store: one.store, clock: one.time }, change.id, applied);
  expect(ended).toMatchObject({ state: 'applied' });
});

test('a change whose node left no row is held until that was seen to stand still', async () => {
  const { address } = await postgresDatabase();
  const clock = new ManualClock();
  const time = new ManualClock();
  await using gone = new AsyncDisposableStack();
  const one = gone.adopt(await openPostgresStore({ address, clock, beating: new ManualClock() }), (store) =>
    store.close(),
  );
  const other = gone.adopt(await openPostgresStore({ address, clock, beating: time }), (store) => store.close());
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

test('nodes that ended leave their row behind for a day, and longer only if an open change names them', async () => {
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
  ...{ callsWaiting: 0, budget: [], credentialProblem: null, settings: {} },
};

/** A daemon as its operator names it. */
function daemonNamed(name: string, rest: Partial<ShownNode> = {}): ShownNode {
  return { name, status: () => status, onOutgrown: () => undefined, carryOut: async () => undefined, ...rest };
}

test('a daemon that shows itself is seen by all with what it says of itself, until it is closed', async () => {
  const { address } = await postgresDatabase();
  const [one, other] = await Promise.all([1, 2].map(() => openPostgresStore({ address, clock: new ManualClock() })));
  await other?.enqueue(7); // a command is no daemon
  let isDraining = false;
  await one?.nodes?.showNode(daemonNamed('east', { status: () => ({ ...status, isDraining }) }));
  expect(await other?.nodes?.listNodes()).toMatchObject([{ name: 'east', state: 'serving', status }]);
  isDraining = true;
  await expect.poll(() => other?.nodes?.listNodes()).toMatchObject([{ name: 'east', state: 'draining' }]);
  await one?.close();
  expect(await other?.nodes?.listNodes()).toEqual([]);
  await other?.close();
});

test('what is asked of a daemon is carried out once, by the one that is meant, and who asked learns what came of it', async () => {
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
  const commandId = (await desk.nodes?.askNode(id, { does: 'reload', by: 'cli:ann@desk' })) ?? '';
  await expect.poll(() => desk.nodes?.outcomeOf(commandId)).toEqual({ outcome: { state: 'applied', by: 'a\0b' } });
  expect(carriedOut).toEqual(['east: reload for cli:ann@desk']);
  await Promise.all([east.close(), west.close(), desk.close()]);
});

test('a daemon that others have ended joins anew by itself, and is ready again', async () => {
  const { address } = await postgresDatabase();
  const time = new ManualClock();
  const store = await openPostgresStore({ address, clock: new ManualClock(), beating: time });
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

test('a daemon without a lease is not ready, nor is one whose database a later rankd has changed', async () => {
  const { address } = await postgresDatabase();
  const time = new ManualClock();
  const store = await openPostgresStore({ address, clock: new ManualClock(), beating: time });
  const outgrown: string[] = [];
  await store.nodes?.showNode(daemonNamed('east', { onOutgrown: ({ code }) => void outgrown.push(code) }));
  await using app = await openTestApp({ store });
  const readiness = async () => codeOf(await send(`${app.url}/readyz`, { method: 'GET' }));
  expect(await readiness()).toBeUndefined();
  await time.skip(5_000);
  expect(await readiness()).toBe('store_unavailable');
  await expect
    .poll(async () => {
      await time.advance(1_000);
      return readiness();
    })
    .toBeUndefined();
  onTestFinished(async () => {
    await onServer(address, 'DELETE FROM rankd.schema_steps WHERE version > 7'); // the next test gets this database
  });
  await onServer(address, `INSERT INTO rankd.schema_steps VALUES (8, 1, '2.0.0', 0)`); // which it can live with
  await time.advance(1_000);
  await store.nodes?.showNode(daemonNamed('east', { onOutgrown: ({ code }) => void outgrown.push(code) }));
  expect(outgrown).toEqual([]);
  await onServer(address, `INSERT INTO rankd.schema_steps VALUES (9, 9, '3.0.0', 0)`);
  await expect
    .poll(async () => {
      await time.advance(1_000);
      return readiness();
    })
    .toBe('store_unavailable');
  expect(outgrown).toEqual(['schema_newer']);
});

async function forgetNodes(address: ServerAddress): Promise<void> {
  await onServer(address, 'DELETE FROM rankd.nodes');
}

async function onServer({ host, port, user, database }: ServerAddress, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ host, port, user, database });
  await client.connect();
  const { rows } = await client.query(sql);
  await client.end();
  return rows;
}
