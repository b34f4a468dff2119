import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import type { ServerAddress } from '../../src/base/net.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { NodeStatus } from '../../src/core/nodes.ts';
import { startDaemon } from '../../src/daemon/daemon.ts';
import { OpenCloudPlatform } from '../../src/platforms/open-cloud.ts';
import { createKey } from '../../src/usecases/keys/keys.ts';
import { codeOf, rankBody } from '../support/answers.ts';
import { type FakeOpenCloud, sampleUsers, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { type Held, holdWrites, platformWith } from '../support/platform-with.ts';
import { onServer, postgresDatabase } from '../support/postgres-database.ts';
import { send } from '../support/send.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startStoreProxy } from '../tools/store-proxy.ts';

const { trainee: bob, memberOnly } = sampleUsers;

interface NodeOptions {
  store: ServerAddress;
  fake: FakeOpenCloud;
  baseUrl?: string;
  deadline?: string;
  held?: Held;
}

async function startNode({ store, fake, baseUrl = fake.baseUrl, deadline = '20s', held }: NodeOptions) {
  const dataDir = tempDir();
  const flags = { 'server.port': '0', 'platform.kind': 'simulated', 'server.deadline': deadline };
  const { config } = loadConfig({ flags, env: {}, cwd: dataDir });
  const tuning = { perTryTimeoutMs: 400, backOffMs: 20, maxBackOffMs: 100, minTryMs: 20 };
  const openCloud = new OpenCloudPlatform({ ...fake, baseUrl, legacyBaseUrl: baseUrl, clock: systemClock, tuning });
  const daemon = await startDaemon({
    config: { ...config, store },
    dataDir,
    log: createLog({ level: 'info', readable: false, write: () => undefined }),
    overrides: { platform: platformWith(held?.platform(openCloud) ?? openCloud, { readLagMs: 300 }) },
  });
  onTestFinished(() => daemon.stop());
  const app = daemon.app.current;
  const status: NodeStatus = {
    ...{ version: '1', url: daemon.url, group: app.group.title, isDraining: false, uptimeSeconds: 0 },
    ...{ requestsInFlight: 0, callsWaiting: 0, budget: [], credentialProblem: null, serverAheadMs: 0, settings: {} },
  };
  await app.store.nodes?.showNode({
    ...{ name: daemon.url, status: () => status, carryOut: async () => undefined },
    ...{ onNodesChanged: () => undefined },
  });
  return { app, url: daemon.url };
}

type Node = Awaited<ReturnType<typeof startNode>>;

function rank({ url }: Node, { key, userId }: { key: string; userId: number }) {
  return send(`${url}/v1/ranker?placeid=1`, { method: 'POST', key, body: rankBody({ rankeeId: userId }) });
}

async function latest({ app }: Node, rankeeId: number) {
  return (await app.store.listChanges({ rankeeId, limit: 1 }))[0]?.state;
}

async function newKey({ app }: Node): Promise<string> {
  const request = { name: 'game', mode: 'live', place: { id: 1 }, by: 'cli:ann@host' } as const;
  return (await createKey(app, { ...request, scopes: ['verify', 'rank'] })).secret;
}

test('a change by a daemon that loses its connection to Roblox is reconciled by another daemon', async () => {
  const [fake, { address: store }] = await Promise.all([startFakeOpenCloud(), postgresDatabase()]);
  onTestFinished(() => fake.close());
  const proxy = await startStoreProxy(Number(new URL(fake.baseUrl).port));
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const cutOff = await startNode({ store, fake, baseUrl: `http://127.0.0.1:${proxy.port}`, deadline: '4s' });
  const other = await startNode({ store, fake });
  await expect.poll(() => cutOff.app.store.nodes?.isAlone).toBe(false);
  fake.faults.add({ operation: 'assign', kind: 'slow', delayMs: 300 });
  const asked = rank(cutOff, { key: await newKey(other), userId: bob });
  await expect.poll(() => fake.journal.writes(bob).length, { interval: 5 }).toBe(1);
  proxy.mode = 'hold';
  const answer = await asked;
  expect([answer.status, codeOf(answer)], answer.text).toEqual([504, 'outcome_unknown']);
  await expect.poll(() => latest(other, bob)).toBe('applied');
  expect(fake.violations()).toEqual([]);
  proxy.mode = 'pass';
});

test.each([
  ['between two writes', bob],
  ['after the last write', memberOnly],
])(
  'a change that the database loses %s, as in a failover, becomes unknown and is still reconciled',
  async (_when, userId) => {
    const [fake, { address: store }] = await Promise.all([startFakeOpenCloud(), postgresDatabase()]);
    onTestFinished(() => fake.close());
    const held = holdWrites({ userId });
    const node = await startNode({ store, fake, held });
    const change = { key: await newKey(node), userId };
    const asked = rank(node, change);
    await held.begun;
    await onServer(store, 'DELETE FROM rankd.rank_changes');
    held.release();
    const answer = await asked;
    expect([answer.status, codeOf(answer)], answer.text).toEqual([504, 'outcome_unknown']);
    await expect.poll(() => latest(node, userId)).toBe('applied');
    const again = await rank(node, change);
    expect(again.status, again.text).toBe(200);
    expect(fake.violations()).toEqual([]);
  },
);

test("while PostgreSQL's disk is full, keys are still verified, but no ranks are changed, and running changes stay open", async () => {
  const [fake, { address: store }] = await Promise.all([startFakeOpenCloud(), postgresDatabase()]);
  onTestFinished(() => fake.close());
  const held = holdWrites({ userId: bob });
  const node = await startNode({ store, fake, held });
  const key = await newKey(node);
  const codes = async (asked: ReturnType<typeof rank>) => [(await asked).status, codeOf(await asked)];
  const readiness = async () => (await send(`${node.url}/readyz`, { method: 'GET' })).status;
  const asked = rank(node, { key, userId: bob });
  await held.begun;
  await onServer(store, fillDisk);
  onTestFinished(async () => void (await onServer(store, freeDisk)));
  held.release();
  expect(await codes(asked)).toEqual([504, 'outcome_unknown']);
  expect(await codes(rank(node, { key, userId: memberOnly }))).toEqual([503, 'store_unavailable']);
  expect(fake.journal.writes(memberOnly)).toEqual([]);
  expect(await codes(send(`${node.url}/v1/apikey`, { method: 'POST', key, body: { placeid: 1 } }))).toEqual([
    200,
    undefined,
  ]);
  expect([await readiness(), await latest(node, bob)]).toEqual([503, 'pending']);
  await onServer(store, freeDisk);
  await expect.poll(() => latest(node, bob)).toBe('applied');
  await expect.poll(readiness).toBe(200);
  expect(await codes(rank(node, { key, userId: memberOnly }))).toEqual([200, undefined]);
  expect(fake.violations()).toEqual([]);
});

/** The tables that grow over time. Rows that are updated in place, such as heartbeats, need no more space. */
const growing = ['rank_changes', 'audit_events', 'member_queue', 'keys', 'idempotency_claims'];
const fillDisk = `
  CREATE FUNCTION rankd.no_room() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
  ${growing.map((table) => `CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON rankd.${table} EXECUTE FUNCTION rankd.no_room();`).join('\n')}`;
const freeDisk = 'DROP FUNCTION IF EXISTS rankd.no_room CASCADE';
