import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DaemonHere } from '../support/daemon-here.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { blocksOf } from '../support/readme-commands.ts';
import { CliHome } from '../support/run-cli.ts';
import { sampleOf, scrape } from '../support/scrape.ts';

const on = { RANKD_METRICS_ENABLED: 'true' };

test('metrics are off by default, and have a separate listener', async () => {
  using home = new CliHome();
  await using quiet = await DaemonHere.start(home);
  expect(quiet.metricsUrl).toBeNull();
  await quiet.stop();
  await using daemon = await DaemonHere.start(home, { env: { ...on, RANKD_METRICS_PORT: '0' } });
  expect(new URL(daemon.metricsUrl ?? '').port).not.toBe(new URL(daemon.url).port);
  expect(sampleOf(await scrape(daemon.metricsUrl ?? ''), 'rankd_credential_accepted')).toBe(1);
});

test('the settings in docs/metrics.md enable metrics, and the curl command there prints them', async () => {
  using home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), blocksOf('docs/metrics.md', 'yaml')[0] ?? '');
  await using daemon = await DaemonHere.start(home, { env: { RANKD_METRICS_PORT: '0' } });
  const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const [, curl = '', url = ''] = /`(curl -s (http:\S+))`/.exec(page) ?? [];
  const { code, stdout } = await home.shell(curl.replace(new URL(url).origin, new URL(daemon.metricsUrl ?? '').origin));
  expect(code).toBe(0);
  expect(stdout).toMatch(/^rankd_build_info\{version="[\d.]+"\} 1$/m);
  const { port } = new URL(url);
  expect(
    (await home.json<{ settings: Array<{ name: string; value: unknown }> }>('config', 'show')).settings,
  ).toContainEqual(expect.objectContaining({ name: 'metrics.port', value: Number(port) }));
});

test('with a taken metrics port, serve exits with 69 and names the setting', async () => {
  using home = new CliHome();
  await using daemon = await DaemonHere.start(home);
  const { port } = new URL(daemon.url);
  const env = { ...on, RANKD_METRICS_PORT: port };
  const { code, stdout, stderr } = await home.here(['serve', '--port', '0'], { env, dataDir: home.path('other') });
  expect([code, stdout]).toEqual([69, '']);
  expect(stderr).toBe(
    `error: Another program is already listening on 127.0.0.1:${port} (metrics.port).\ntry: stop it, or choose a different port: set metrics.port in rankd.yaml\n`,
  );
});

test('after a reload, the calls of the new platform are counted', async () => {
  using home = new CliHome();
  const file = home.path('rankd.yaml');
  writeFileSync(file, 'metrics: { enabled: true, port: 0 }\n');
  await using daemon = await DaemonHere.start(home);
  const reads = async () =>
    sampleOf(await scrape(daemon.metricsUrl ?? ''), 'rankd_platform_calls_total', {
      operation: 'roles',
      outcome: 'ok',
    });
  await expect.poll(reads).toBeGreaterThan(0);
  const before = await reads();
  const group = new URL('../fixtures/group.yaml', import.meta.url).pathname;
  writeFileSync(file, `metrics: { enabled: true, port: 0 }\nplatform: { group_file: "${group}" }\n`);
  daemon.reload();
  await expect.poll(() => daemon.log).toContain('the configuration was reloaded');
  await expect.poll(reads, { timeout: 5_000 }).toBeGreaterThan(before); // scrapes within a second share a rendering
});

test('the budget of a platform that a reload has replaced is no longer reported', async () => {
  await using world = await openCloudHome();
  const file = world.home.path('rankd.yaml');
  const metrics = 'metrics: { enabled: true, port: 0 }\n';
  writeFileSync(file, readFileSync(file, 'utf8') + metrics);
  const daemon = await world.serve();
  const paced = async () =>
    (await scrape(daemon.metricsUrl ?? '')).filter(({ name }) => /^rankd_platform_(budget|queue)/.test(name));
  expect(await paced()).not.toEqual([]);
  writeFileSync(file, `${metrics}platform: { kind: simulated }\n`);
  await world.home.json('reload');
  await expect.poll(paced, { timeout: 5_000 }).toEqual([]);
});
