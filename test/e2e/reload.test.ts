import { writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { createKey, ranker } from '../environment/open-cloud-home.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { CliHome } from '../support/run-cli.ts';

interface Event {
  action: string;
  detail: { applied?: string[]; needRestart?: string[]; message?: string };
}

const promotion = { rankerName: 'A', rankerId: 1003, rankeeName: 'B', rankeeId: 1001, newRankId: 20 };

test('SIGHUP: what the file says now holds from the next request; what needs a restart is named', async () => {
  const { home, daemon, secret } = await serveWith('policy: { locked_roles: [20] }\n');
  expect(await daemon.post(ranker, secret, promotion)).toMatchObject({ status: 403 });
  expect(
    await reload(
      { home, daemon },
      'policy: { locked_roles: [] }\nlimits: { rank: 1, rank_burst: 1 }\nserver: { host: 127.0.0.9 }\n',
    ),
  ).toEqual({
    action: 'config.reload',
    detail: { applied: ['policy.locked_roles', 'limits.rank', 'limits.rank_burst'], needRestart: ['server.host'] },
  });
  expect(await daemon.post(ranker, secret, promotion)).toMatchObject({ status: 200 });
  expect(await daemon.post(ranker, secret, promotion)).toMatchObject({ status: 429 });
});

test('SIGHUP with a file that has a mistake changes nothing and says what is wrong', async () => {
  const { home, daemon, secret } = await serveWith('policy: { locked_roles: [20] }\n');
  const { action, detail } = await reload({ home, daemon }, 'policy: { locked_roles: [], max_rank: 999 }\n');
  expect(action).toBe('config.refuse');
  expect(detail.message).toContain('rankd.yaml:1:39 policy.max_rank');
  expect(await daemon.post(ranker, secret, promotion)).toMatchObject({ status: 403 });
});

test('SIGHUP with a ladder that the group does not have changes nothing', async () => {
  const { home, daemon, secret } = await serveWith('');
  const { action } = await reload({ home, daemon }, 'group: { ladder: [10, 99] }\npolicy: { locked_roles: [20] }\n');
  expect(action).toBe('config.refuse');
  expect(await daemon.post(ranker, secret, promotion)).toMatchObject({ status: 200 });
});

test('a daemon on the simulated group goes live, and to another key, without a restart', async () => {
  const roblox = await startFakeOpenCloud();
  onTestFinished(() => roblox.close());
  const { home, daemon, secret } = await serveWith('');
  writeFileSync(home.path('roblox.key'), roblox.apiKey, { mode: 0o600 });
  const yaml = `group: { id: ${roblox.groupId} }
platform: { api_key_file: roblox.key, base_url: "${roblox.baseUrl}", legacy_base_url: "${roblox.legacyBaseUrl}" }
`;
  expect((await reload({ home, daemon }, yaml)).detail.applied).toContain('platform.api_key');
  expect(await daemon.post(ranker, secret, promotion)).toMatchObject({ status: 200 });
  expect(roblox.journal.writes(promotion.rankeeId).length).toBeGreaterThan(0);

  writeFileSync(home.path('roblox.key'), 'another-key');
  expect((await reload({ home, daemon }, yaml)).detail).toEqual({ applied: ['platform.api_key'], needRestart: [] });
  const refused = await daemon.post(ranker, secret, { ...promotion, newRankId: 10 });
  expect(refused).toMatchObject({ status: 502, json: { code: 'platform_credential' } });
});

async function serveWith(yaml: string): Promise<{ home: CliHome; daemon: DaemonProcess; secret: string }> {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  writeFileSync(home.path('rankd.yaml'), yaml);
  const secret = await createKey(home);
  const daemon = await DaemonProcess.start(home);
  onTestFinished(() => daemon[Symbol.asyncDispose]());
  return { home, daemon, secret };
}

/** What became of it, as the audit tells. */
async function reload({ home, daemon }: { home: CliHome; daemon: DaemonProcess }, yaml: string): Promise<Event> {
  const isReload = ({ action }: Event) => action.startsWith('config.');
  const told = async () => (await home.json<{ events: Event[] }>('audit', 'list')).events.filter(isReload);
  const before = (await told()).length;
  writeFileSync(home.path('rankd.yaml'), yaml);
  daemon.process.kill('SIGHUP');
  await expect.poll(async () => (await told()).length, { timeout: 10_000 }).toBe(before + 1);
  const [{ action, detail } = expect.fail('nothing was kept')] = await told();
  return { action, detail };
}
