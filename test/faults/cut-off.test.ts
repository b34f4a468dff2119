import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import type { ServerAddress } from '../../src/base/server-address.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { NodeStatus } from '../../src/core/nodes.ts';
import { startDaemon } from '../../src/daemon/daemon.ts';
import { OpenCloudPlatform } from '../../src/platforms/open-cloud.ts';
import { createKey } from '../../src/usecases/keys/keys.ts';
import { codeOf, rankBody } from '../support/answers.ts';
import { type FakeOpenCloud, sampleUsers, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { platformWith } from '../support/platform-with.ts';
import { postgresDatabase } from '../support/postgres-database.ts';
import { send } from '../support/send.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startStoreProxy } from '../tools/store-proxy.ts';

const { trainee: bob } = sampleUsers;

/** A daemon that reaches Roblox by an address of its own. */
async function startNode(store: ServerAddress, fake: FakeOpenCloud, baseUrl: string) {
  const dataDir = tempDir();
  const flags = { 'server.port': '0', 'platform.kind': 'simulated', 'server.deadline': '2s' };
  const { config } = loadConfig({ flags, env: {}, cwd: dataDir });
  const tuning = { perTryTimeoutMs: 400, backOffMs: 20, maxBackOffMs: 100, shortestTryMs: 20 };
  const openCloud = new OpenCloudPlatform({ ...fake, baseUrl, legacyBaseUrl: baseUrl, clock: systemClock, tuning });
  const daemon = await startDaemon({
    config: { ...config, store },
    dataDir,
    log: createLog({ level: 'info', readable: false, write: () => undefined }),
    overrides: { platform: platformWith(openCloud, { readLagMs: 300 }) },
  });
  onTestFinished(() => daemon.stop());
  const app = daemon.app.current;
  const status: NodeStatus = {
    ...{ version: '1', url: daemon.url, group: app.group.title, isDraining: false, uptimeSeconds: 0 },
    ...{ requestsInFlight: 0, callsWaiting: 0, budget: [], credentialProblem: null, settings: {} },
  };
  await app.store.nodes?.showNode({
    ...{ name: daemon.url, status: () => status, carryOut: async () => undefined },
    ...{ onNodesChanged: () => undefined, onOutgrown: () => undefined },
  });
  return { app, url: daemon.url };
}

test('what became of a change of a daemon that is cut off from Roblox, another one finds out', async () => {
  const [fake, { address }] = await Promise.all([startFakeOpenCloud(), postgresDatabase()]);
  onTestFinished(() => fake.close());
  const line = await startStoreProxy(Number(new URL(fake.baseUrl).port));
  onTestFinished(() => line[Symbol.asyncDispose]());
  const cutOff = await startNode(address, fake, `http://127.0.0.1:${line.port}`);
  const other = await startNode(address, fake, fake.baseUrl);
  await expect.poll(() => cutOff.app.store.nodes?.isAlone).toBe(false);
  const { secret } = await createKey(other.app, {
    ...{ name: 'game', mode: 'live', scopes: ['verify', 'rank'], place: { id: 1 }, by: 'cli:ann@host' },
  });
  const written = () => fake.journal.writes(bob).length;
  fake.latencyMs = 300;
  const asked = send(`${cutOff.url}/v1/ranker?placeid=1`, {
    method: 'POST',
    key: secret,
    body: rankBody({ rankeeId: bob }),
  });
  await expect.poll(written, { interval: 5 }).toBe(1);
  line.mode = 'hold';
  fake.latencyMs = 0;
  const answer = await asked;
  expect([answer.status, codeOf(answer)], answer.text).toEqual([504, 'outcome_unknown']);
  const latest = async () => (await other.app.store.listChanges({ rankeeId: bob, limit: 1 }))[0]?.state;
  await expect.poll(latest).toBe('applied');
  expect(fake.violations()).toEqual([]);
  line.mode = 'pass';
});
