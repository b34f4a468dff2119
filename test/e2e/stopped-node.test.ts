import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codeOf } from '../support/answers.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { type FakeOpenCloud, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { createPostgresDatabase, type PostgresDatabase } from '../support/postgres-database.ts';
import { CliHome } from '../support/run-cli.ts';
import { send } from '../support/send.ts';
import { configFor } from '../tools/fake-config.ts';

/**
 * Both daemons share a database. In one test, `west` can't reach Roblox; in the other, `east` is stopped with SIGSTOP.
 */
describe('a failing daemon next to a working one', () => {
  let database: PostgresDatabase;
  let fake: FakeOpenCloud;
  let secret = '';
  const homes = { east: new CliHome(), west: new CliHome() };
  const write = (name: 'east' | 'west', config: string) => {
    const store = `store: {url: '${database.url}', node: ${name}}\n`;
    writeFileSync(homes[name].path('roblox.key'), fake.apiKey, { mode: 0o600 });
    writeFileSync(homes[name].path('rankd.yaml'), `${store}${config}  api_key_file: roblox.key\n`, { mode: 0o600 });
  };
  const written = (member: number) =>
    fake.journal.entries.filter(({ operation, userId }) => operation === 'assign' && userId === member).length;
  const latest = async (member: number) => {
    const { changes } = await homes.west.json<{ changes: Array<{ rankeeId: number; state: string }> }>(
      'history',
      'list',
    );
    return changes.find(({ rankeeId }) => rankeeId === member)?.state;
  };
  beforeAll(async () => {
    [database, fake] = await Promise.all([createPostgresDatabase(), startFakeOpenCloud()]);
    for (const name of ['east', 'west'] as const) write(name, configFor(fake));
    secret = await homes.west.createKey();
    for (const userId of [2001, 2002])
      fake.group.setMember(
        userId,
        fake.group.roles.filter(({ rank }) => rank === 10).map(({ id }) => id),
      );
  });

  afterAll(async () => {
    await fake.close();
    await database[Symbol.asyncDispose]();
    for (const home of Object.values(homes)) home[Symbol.dispose]();
  });

  test('reports that it cannot reach Roblox and is not ready, while the other one changes ranks', async () => {
    await using east = await DaemonHere.start(homes.east);
    expect(codeOf(await east.rank(secret, { rankeeId: 999_999 }))).toBe('member_not_found');
    const first = await east.rank(secret, { rankeeId: 2001 });
    expect(first.status, first.text).toBe(200);
    const nowhere = 'http://127.0.0.1:9';
    write('west', `server: {deadline: 3s}\n${configFor({ ...fake, baseUrl: nowhere, legacyBaseUrl: nowhere })}`);
    await using west = await DaemonHere.start(homes.west);
    const [refused, readiness] = await Promise.all([
      west.rank(secret, { rankeeId: 2001 }),
      send(`${west.url}/readyz`, { method: 'GET' }),
    ]);
    expect([refused.status, codeOf(refused), readiness.status]).toEqual([503, 'platform_unavailable', 503]);
    expect((await west.verify(secret)).status).toBe(200);
    expect((await send(`${east.url}/readyz`, { method: 'GET' })).status).toBe(200);
    expect((await east.rank(secret, { rankeeId: 2001, newRankId: 50 })).status).toBe(200);
    write('west', configFor(fake));
  });

  test('responds with the outcome in the history after it was suspended during a change for longer than its lease', async () => {
    await using west = await DaemonHere.start(homes.west);
    await using east = await DaemonProcess.start(homes.east);
    fake.latencyMs = 800;
    const asked = east.rank(secret, { rankeeId: 2002 });
    await expect.poll(() => written(2002), { interval: 10, timeout: 20_000 }).toBe(1);
    // once `east` responds, it has finished sending; if it were stopped while sending, it would treat the write as late
    await send(`${east.url}/healthz`, { method: 'GET' });
    east.process.kill('SIGSTOP');
    fake.latencyMs = 0;
    expect(await latest(2002)).toBe('pending');
    await expect.poll(() => latest(2002), { interval: 300, timeout: 40_000 }).toBe('applied'); // by west
    east.process.kill('SIGCONT');
    const answer = await asked;
    expect([answer.status, codeOf(answer)], answer.text).toEqual([200, undefined]);
    expect(written(2002)).toBe(1);
    expect(fake.violations()).toEqual([]);
    await expect.poll(async () => (await send(`${east.url}/readyz`, { method: 'GET' })).status).toBe(200);
    expect((await west.rank(secret, { rankeeId: 2002, newRankId: 10 })).status).toBe(200);
  });
});
