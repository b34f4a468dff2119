import { mkdirSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systems } from '../../src/base/system.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { CliHome } from '../support/run-cli.ts';

test.concurrent('a command that wrote data reports where it is stored, and whether a daemon is using it', async () => {
  using home = new CliHome();
  const created = await home.here(['key', 'create', 'quiz']);
  expect(created.stderr).toContain(`There was no database in ${home.dataDir}; rankd created one.\n`);
  expect(created.stderr).toMatch(new RegExp(`\nThis is stored in ${home.dataDir}; no daemon is using it.\n$`));
  await using _daemon = await DaemonProcess.start(home);
  const served = `This is stored in ${home.dataDir}; the running daemon is using it.\n`;
  for (const args of [
    ['whitelist', 'add', '42', '--key', 'quiz'],
    ['key', 'set', 'quiz', '--max-rank', '20'],
    ['workspace', 'suspend', '-y'],
    ['workspace', 'resume'],
    ['rank', 'set', '1001', '20'],
    ['key', 'revoke', 'quiz', '-y'],
  ]) {
    expect((await home.here(args)).stderr, args.join(' ')).toContain(served);
  }
  expect((await home.here(['key', 'list'])).stderr).toBe('');
  expect((await home.here(['whitelist', 'remove', '42', '--key', 'quiz', '--json'])).stderr).toBe('');
  expect((await home.here(['workspace', 'suspend', '-y', '-q'])).stderr).toBe('');
});

test.concurrent('a user without a database uses the service’s database, with a notice', async () => {
  using home = new CliHome();
  const service = join(home.folder, 'var-lib-rankd');
  await home.here(['key', 'create', 'game'], { dataDir: service });
  const unnamed = { dataDir: '' };
  const listed = await home.here(['key', 'list'], unnamed);
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining('game') });
  expect(listed.stderr).toBe(`Using the service's data directory, ${service}.\n`);
  const added = await home.here(['whitelist', 'add', '42'], unnamed);
  expect(added.stderr).toContain(`This is stored in ${service}; `);
});

test.concurrent('a user with a separate database gets a notice about the service’s database', async () => {
  using home = new CliHome();
  const service = join(home.folder, 'var-lib-rankd');
  const unnamed = { dataDir: '' };
  await home.here(['key', 'create', 'own'], unnamed);
  mkdirSync(service);
  const listed = await home.here(['key', 'list'], unnamed);
  expect(listed.stdout).toContain('own');
  expect(listed.stderr).toContain(
    ` To use the service's data: sudo -u ${userInfo().username} rankd --data-dir ${service} …\n`,
  );
  expect((await home.here(['key', 'list', '--data-dir', home.dataDir])).stderr).not.toContain('service');
});

test.concurrent('a daemon of a real group that accepts no key reports that at its start and in status', async ({
  expect,
  onTestFinished,
}) => {
  await using world = await openCloudHome();
  const { home } = world;
  const fresh = home.path('fresh');
  await home.here(['key', 'create', 'trial'], { dataDir: fresh, env: { RANKD_PLATFORM_KIND: 'simulated' } });
  const asks = { env: { RANKD_DATA_DIR: fresh } };
  const daemon = home.start(['serve'], asks);
  onTestFinished(() => void daemon.kill());
  let stderr = '';
  daemon.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  await expect.poll(() => stderr).toContain('No game key is accepted yet, so no game can do anything.');
  expect(stderr).toContain(`it is in a different data directory than ${fresh}: `);
  expect((await home.here(['status'], asks)).stdout).toMatch(/^game keys +NONE is accepted/m);
  await home.here(['key', 'adopt', 'trial'], asks);
  const { stdout } = await home.here(['status', '--json'], asks);
  expect(JSON.parse(stdout)).toMatchObject({ status: { acceptsKeys: true } });
});

test.concurrent('the keys of a trial work in the service after the step that service install prints', async () => {
  using home = new CliHome();
  const secret = await home.createKey('my-game');
  const { stderr } = await home.here(['service', 'install', '--dir', home.cwd]);
  const step = /^ {2}(rankd backup .+ && rankd restore .+)$/m.exec(stderr)?.[1] ?? expect.fail(stderr);
  const service = join(home.folder, 'var-lib-rankd');
  expect(step).toContain(`--data-dir ${service}`);
  for (const command of step.split(' && ')) {
    expect(await home.here(command.split(' ').slice(1))).toMatchObject({ code: 0 });
  }
  const verdict = await home.here(['key', 'verify', '-'], { input: secret, dataDir: service });
  expect(verdict).toMatchObject({ code: 0, stdout: 'yes: key "my-game"\n' });
  expect((await home.here(['service', 'install', '--dir', home.cwd, '--force'])).stderr).not.toContain('rankd backup');
});

test.concurrent('hints repeat the --config and --data-dir of the command, even in JSON on Windows', async () => {
  using home = new CliHome();
  mkdirSync(home.path('my second'));
  writeFileSync(home.path('cloud.key'), 'a-key', { mode: 0o600 });
  const named = ['--config', 'second.yaml', '--data-dir', 'my second'];
  const flags = ['--group', '4199740', '--credential-file', 'cloud.key', '--no-check', '--key', 'game'];
  const again = "rankd --config second.yaml --data-dir 'my second'";
  const { stderr } = await home.here(['init', ...flags, ...named]);
  expect(stderr).toContain(`Start it: ${again} serve\n`);
  expect(stderr).toContain(`: ${again} whitelist add PLACE --key game\n`);
  expect((await home.here(['health', ...named])).stderr).toContain(
    `start it with \`${again} serve\`, or name a different directory with --data-dir`,
  );
  expect((await home.here(['key', 'show', 'gam', ...named])).stderr).toContain(`try: ${again} key `);
  const other = await home.here(['key', 'show', 'gam', ...named, '--json'], {
    system: systems.windows,
    typedAs: '.\\rankd',
  });
  expect(JSON.parse(other.stderr).try).toContain('.\\rankd --config second.yaml --data-dir "my second" key ');
});
