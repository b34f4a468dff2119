import { afterEach, beforeEach, expect, test } from 'vitest';
import { DaemonHere } from '../support/daemon-here.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { CliHome } from '../support/run-cli.ts';

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home[Symbol.dispose]());

test('health exits with 0 if the daemon responds, and prints its address', async () => {
  await using daemon = await DaemonHere.start(home);
  expect(await home.run(['health'])).toMatchObject({
    code: 0,
    stdout: `ok: ${daemon.url}/healthz answers\n`,
    stderr: 'SIMULATED GROUP: nothing here touches Roblox.\n',
  });
  const url = `${daemon.url}/readyz`;
  expect(await home.json('health', '--ready')).toEqual({ v: 1, healthy: true, url, simulated: true });
});

test('health reaches a daemon that listens on all addresses', async () => {
  await using _daemon = await DaemonHere.start(home, { args: ['--host', '0.0.0.0'] });
  expect((await home.here(['health', '--ready'])).code).toBe(0);
});

test('health exits with 69 if no daemon is running here, although a different one listens on the configured port', async () => {
  const other = home.path('other');
  await using daemon = await DaemonHere.start(home, { env: { RANKD_DATA_DIR: other } });
  const result = await home.run(['health'], { env: { RANKD_SERVER_PORT: new URL(daemon.url).port } });
  expect(result).toMatchObject({
    code: 69,
    stdout: '',
    stderr: `error: No rankd daemon is running on the data directory ${home.dataDir}.
try: start it with \`rankd serve\`, or name a different directory with --data-dir
`,
  });
  const asJson = await home.run(['health', '--json']);
  expect(asJson.json()).toMatchObject({ v: 1, success: false, code: 'daemon_unavailable' });
});

test('a daemon that cannot change ranks is healthy and not ready, and reports the reason', async () => {
  await using world = await openCloudHome();
  await using daemon = await world.serve();
  expect((await world.home.here(['health', '--ready'])).code).toBe(0);
  world.roblox.credential.enabled = false;
  await daemon.rank(world.secret); // this call reveals the problem to rankd
  const result = await world.home.here(['health', '--ready']);
  expect(result).toMatchObject({ code: 69, stdout: '' });
  expect(result.stderr).toMatch(/^error: rankd is not ready: .+\ntry: rankd doctor; .+\n$/);
  expect((await world.home.here(['health'])).code).toBe(0);
});
