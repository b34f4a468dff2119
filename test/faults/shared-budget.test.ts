import { createHash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import type { ServerAddress } from '../../src/base/net.ts';
import { loadConfig } from '../../src/config/load.ts';
import { startDaemon } from '../../src/daemon/daemon.ts';
import { createKey } from '../../src/usecases/keys/keys.ts';
import { codeOf, rankBody } from '../support/answers.ts';
import { documentedLimits } from '../support/fake-open-cloud/budgets.ts';
import { type FakeOpenCloud, sampleRoles, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { onServer, postgresDatabase } from '../support/postgres-database.ts';
import { send } from '../support/send.ts';
import { tempDir } from '../support/temp-dir.ts';

const limit = 8;

/** Each call of the node's `rank` changes the rank of a new member. */
async function startNode({ store, fake }: { store: ServerAddress; fake: FakeOpenCloud }) {
  const dataDir = tempDir();
  const flags = {
    ...{ 'server.port': '0', 'group.id': String(fake.groupId), 'platform.base_url': fake.baseUrl },
    ...{ 'platform.legacy_base_url': fake.legacyBaseUrl, 'platform.users_base_url': fake.usersBaseUrl },
  };
  const { config } = loadConfig({ flags, env: { RANKD_PLATFORM_API_KEY: fake.apiKey }, cwd: dataDir });
  const log = createLog({ level: 'silent', readable: false, write: () => undefined });
  const daemon = await startDaemon({ config: { ...config, store }, dataDir, log });
  onTestFinished(() => daemon.stop());
  const { port } = new URL(daemon.url);
  const request = { name: `game-${port}`, mode: 'live', place: { id: 1 }, by: 'cli:ann@host' } as const;
  const { secret: key } = await createKey(daemon.app.current, { ...request, scopes: ['rank'] });
  let next = Number(port) * 100;
  const rank = async () => {
    next += 1;
    fake.group.setMember(next, [sampleRoles.trainee]);
    const body = rankBody({ rankeeId: next });
    return send(`${daemon.url}/v1/ranker?placeid=1`, { method: 'POST', key, body });
  };
  return { rank };
}

test('two daemons on one database share one budget, even after a failover loses the record of spent calls', async () => {
  const limits = { ...documentedLimits, assign: limit, unassign: limit };
  const [fake, { address: store }] = await Promise.all([startFakeOpenCloud({ limits }), postgresDatabase()]);
  onTestFinished(() => fake.close());
  const [east, west] = [await startNode({ store, fake }), await startNode({ store, fake })];
  for (const node of [east, west, east, west]) expect((await node.rank()).status).toBe(200);
  const rows = await onServer(store, 'SELECT DISTINCT credential FROM rankd.platform_budget');
  expect(rows).toEqual([{ credential: createHash('sha256').update(fake.apiKey).digest('hex') }]);

  await onServer(store, 'DELETE FROM rankd.platform_budget');
  const done: boolean[] = [];
  for (let times = 0; times < limit; times += 1) {
    for (const node of [east, west]) {
      const answer = await node.rank();
      if (answer.status !== 200) expect(codeOf(answer)).toBe('platform_busy');
      done.push(answer.status === 200);
    }
  }
  expect(done.filter(Boolean)).toHaveLength(limit - 4);
  expect(fake.journal.entries.filter(({ status }) => status === 429)).toEqual([]);
});
