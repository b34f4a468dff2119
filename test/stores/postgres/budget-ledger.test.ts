import { expect, onTestFinished, test } from 'vitest';
import type { AccountName, BudgetLedger, OpeningFacts, Store } from '../../../src/ports/index.ts';
import { Database } from '../../../src/stores/postgres/engine/database.ts';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { budgetLedger } from '../../../src/stores/postgres/shared-counts.ts';
import { ledgerContract } from '../../contracts/ledger-contract.ts';
import { newChange, record } from '../../contracts/store/samples.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { onServer, postgresDatabase } from '../../support/postgres-database.ts';
import { startStoreProxy } from '../../tools/store-proxy.ts';

const credential = 'a'.repeat(64);

ledgerContract('the ledger on PostgreSQL', async (clock) => {
  const { store, other } = await twoStores(clock);
  return { ledger: ledgerOf(store), other: ledgerOf(other) };
});

test('each platform key has a separate budget', async () => {
  const { store, other } = await twoStores();
  await ledgerOf(store).change(counted, add);
  const elsewhere = other.budgetLedger('b'.repeat(64));
  expect(await elsewhere?.change(counted, ({ count }) => count)).toBe(0);
});

test('a new account is opened with the time of the last change before the ledger existed, if there was one', async () => {
  const { store, other, clock } = await twoStores();
  const opened: Array<OpeningFacts<Counted>> = [];
  const open = (ledger: BudgetLedger | undefined, operation: string) =>
    ledger?.change({ ...recordingOpens(opened), operation }, () => undefined);
  await open(ledgerOf(store), 'roles');
  await record(store, newChange({ requestedAt: clock.now() - 7, state: 'refused' }));
  await open(ledgerOf(store), 'assign');
  await open(ledgerOf(other), 'unassign');
  expect(opened).toStrictEqual(Array(3).fill({ now: clock.now() }));
  const late = 'b'.repeat(64);
  await open(store.budgetLedger(late), 'assign');
  await record(store, newChange({ requestedAt: clock.now() - 3, state: 'refused' }));
  await open(other.budgetLedger(late), 'unassign');
  expect(opened.slice(3)).toStrictEqual(Array(2).fill({ now: clock.now(), lastChangeAt: clock.now() - 7 }));
});

test.each([
  ['is gone', 'DELETE FROM rankd.platform_budget'],
  ['has an older version', `UPDATE rankd.platform_budget SET version = 1, set_by = 'then', account = '{"count":1}'`],
  ['was set by another process', `UPDATE rankd.platform_budget SET set_by = 'somebody', account = '{"count":1}'`],
])('an account that %s after a failover is reopened with the account that this process knows', async (_what, sql) => {
  const { store, other, address } = await twoStores();
  const opened: Array<OpeningFacts<Counted>> = [];
  const ledger = ledgerOf(store);
  for (let times = 0; times < 3; times += 1) await ledger.change(recordingOpens(opened), add);
  await onServer(address, sql);
  expect(await ledger.change(recordingOpens(opened), add)).toBe(4);
  expect(opened.at(-1)).toMatchObject({ known: { count: 3 } });
  expect(await ledgerOf(other).change(recordingOpens(opened), add)).toBe(5);
  expect(await ledger.change(recordingOpens(opened), add)).toBe(6);
});

test('a lost account is reopened once, even if the next process knows a later version', async () => {
  const { store, other, address } = await twoStores();
  const opened: Array<OpeningFacts<Counted>> = [];
  const [first, next] = [ledgerOf(store), ledgerOf(other)];
  await first.change(counted, add);
  for (let times = 0; times < 3; times += 1) await next.change(counted, add);
  await onServer(address, 'DELETE FROM rankd.platform_budget');
  expect(await first.change(recordingOpens(opened), add)).toBe(2);
  expect(await next.change(recordingOpens(opened), add)).toBe(3);
  expect(await first.change(recordingOpens(opened), add)).toBe(4);
  expect(opened).toHaveLength(1);
});

test('a node that stalls between reading and writing an account blocks no other node and loses no change', async () => {
  const { store, address, clock } = await twoStores();
  await using proxy = await startStoreProxy(address.port);
  const far = await openPostgresStore({ address: { ...address, host: '127.0.0.1', port: proxy.port }, clock });
  onTestFinished(() => far.close());
  const hung = ledgerOf(far);
  expect(await hung.change(counted, add)).toBe(1);
  const added = hung.change(counted, (account) => {
    if (proxy.mode === 'pass' && account.count === 1) proxy.mode = 'hold';
    return add(account);
  });
  await expect.poll(() => proxy.mode).toBe('hold');
  for (let count = 2; count <= 5; count += 1) expect(await ledgerOf(store).change(counted, add)).toBe(count);
  proxy.mode = 'pass';
  expect(await added).toBe(6);
});

test('a change to an account takes one round trip, or two after a change by another node', async () => {
  const { address, clock } = await twoStores();
  const db = new Database(address);
  onTestFinished(() => db.close());
  let trips = 0;
  const counting: Pick<Database, 'work'> = {
    work: (...asked) => {
      trips += 1;
      return db.work(...asked);
    },
  };
  const [one, other] = [0, 1].map(() => budgetLedger(counting as Database, clock, credential));
  await one?.change(counted, add);
  await other?.change(counted, add);
  trips = 0;
  expect(await other?.change(counted, add)).toBe(3);
  expect(trips).toBe(1);
  expect(await one?.change(counted, add)).toBe(4);
  expect(trips).toBe(3); // the first response already contains the other node's change
});

interface Counted {
  count: number;
}

function add(account: Counted): number {
  account.count += 1;
  return account.count;
}

const counted: AccountName<Counted> = { operation: 'assign', open: () => ({ count: 0 }) };

/** Returns an account name whose `open` records the facts that it receives. */
function recordingOpens(opened: Array<OpeningFacts<Counted>>): AccountName<Counted> {
  const open = (facts: OpeningFacts<Counted>) => {
    opened.push(structuredClone(facts));
    return facts.known ?? { count: 0 };
  };
  return { operation: 'assign', open };
}

function ledgerOf(store: Store) {
  const ledger = store.budgetLedger(credential);
  if (ledger === undefined) throw new Error('this store shares no budget');
  return ledger;
}

async function twoStores(clock = new ManualClock()) {
  const { address } = await postgresDatabase();
  const [store, other] = [await openPostgresStore({ address, clock }), await openPostgresStore({ address, clock })];
  onTestFinished(async () => void (await Promise.all([store.close(), other.close()])));
  return { store, other, clock, address };
}
