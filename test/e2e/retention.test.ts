import { expect, test } from 'vitest';
import { engineOf } from '../../src/stores/engine.ts';
import { newChange, record } from '../contracts/store/samples.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { CliHome } from '../support/run-cli.ts';

test('a daemon removes records older than history.keep and audit.keep, and the audit still verifies and records it', async () => {
  using home = new CliHome();
  const longAgo = Date.UTC(2020, 0, 1);
  const store = await engineOf({ dataDir: home.dataDir, clock: new ManualClock(longAgo) }).openStore();
  for (let rankeeId = 1; rankeeId <= 320; rankeeId += 1) {
    await record(store, newChange({ id: `chg_${rankeeId}`, rankeeId, state: 'refused', requestedAt: longAgo }));
  }
  await store.close();
  await home.json('rank', 'set', '1001', '20');
  const changes = async () => (await home.json<{ changes: unknown[] }>('history', 'list', '--limit', '999')).changes;
  const actions = async () => {
    const { events } = await home.json<{ events: Array<{ action: string }> }>('audit', 'list', '--limit', '999');
    return events.map(({ action }) => action);
  };
  await using _daemon = await DaemonHere.start(home, {
    env: { RANKD_HISTORY_KEEP: '365d', RANKD_AUDIT_KEEP: '365d' },
  });
  await expect.poll(actions, { interval: 300 }).toEqual(['audit.prune', 'history.prune', 'rank.applied', 'rank.begin']);
  expect(await changes()).toMatchObject([{ rankeeId: 1001, state: 'applied' }]);
  const env = { RANKD_AUDIT_KEEP: '365d' };
  const verdict = await home.run(['audit', 'verify'], { env });
  expect(verdict).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('events before #321 were removed by retention'),
  });
  const { stdout } = await home.here(['audit', 'verify', '--json'], { env });
  expect(JSON.parse(stdout)).toMatchObject({ intact: true, events: 4, removedUpTo: 320 });
  const withoutKeep = await home.here(['audit', 'verify']);
  expect(withoutKeep).toMatchObject({ code: 5, stdout: expect.stringContaining('audit.keep is not set') });
});

test.each(['0s', '23h', 'never'])('records are kept for at least a day: %s is refused', async (keep) => {
  using home = new CliHome();
  const result = await home.here(['config', 'check'], { env: { RANKD_HISTORY_KEEP: keep } });
  expect(result.code).toBe(78);
  expect(result.stdout + result.stderr).toContain('a duration from 1d');
});
