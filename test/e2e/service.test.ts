import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';
import { runUnprivileged } from '../support/run-unprivileged.ts';

const source = readFileSync(new URL('../../config/rankd.service', import.meta.url), 'utf8');
const binary = fileURLToPath(new URL('../../bin/rankd.js', import.meta.url));
const unitOfThisMachine = source.replaceAll('/usr/local/bin/rankd ', `${process.execPath} ${binary} `);

/** A folder with programs that are found before the machine's own; each writes its arguments to `calls`. */
function fakeProgram(home: CliHome, ...names: string[]): { env: Record<string, string>; calls: () => string } {
  const folder = home.path('programs');
  mkdirSync(folder);
  for (const name of names) {
    writeFileSync(`${folder}/${name}`, `#!/bin/sh\necho "$@" >> '${folder}/calls'\n`);
    chmodSync(`${folder}/${name}`, 0o755);
  }
  writeFileSync(`${folder}/calls`, '');
  return { env: { PATH: `${folder}:${process.env['PATH']}` }, calls: () => readFileSync(`${folder}/calls`, 'utf8') };
}

test.concurrent('print shows config/rankd.service with the paths of this machine, also with --json', async () => {
  using home = new CliHome();
  expect(await home.run(['service', 'print'])).toMatchObject({ code: 0, stdout: unitOfThisMachine });
  expect(await home.json('service', 'print')).toEqual({ v: 1, unit: unitOfThisMachine });
});

test.concurrent('install writes the unit for everybody to read, lets systemd read it, and tells what is next', async () => {
  using home = new CliHome();
  const systemctl = fakeProgram(home, 'systemctl', 'systemd-sysusers');
  const dir = home.path('units');
  mkdirSync(dir);
  const { code, stdout, stderr } = await home.run(['service', 'install', '--dir', dir], { env: systemctl.env });
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: `FIELD    VALUE\nunit     ${dir}/rankd.service\nwritten  yes\n`,
  });
  expect(stderr).toContain('done: the user rankd\ndone: systemctl daemon-reload\n');
  expect(stderr).toMatch(
    /^next:\n {2}.*rankd backup keys\.db && rankd restore -y --data-dir .+ keys\.db {3}\(takes along /m,
  );
  expect(stderr).toContain(`
  install -D -m 600 /dev/stdin /etc/rankd/roblox.key   (paste the Open Cloud key, then press Ctrl-D)
  put the settings into /etc/rankd/rankd.yaml
  systemctl enable --now rankd
`);
  const calls = '--inline u rankd - "rankd, the rank service of a Roblox group" /var/lib/rankd\ndaemon-reload\n';
  expect(systemctl.calls()).toBe(calls);
  expect(readFileSync(`${dir}/rankd.service`, 'utf8')).toBe(unitOfThisMachine);
  expect((statSync(`${dir}/rankd.service`).mode & 0o777).toString(8)).toBe('644');

  const again = await home.run(['service', 'install', '--dir', dir, '--json'], { env: systemctl.env });
  expect(again).toMatchObject({ code: 0, stderr: '' });
  expect(again.json()).toEqual({ v: 1, unit: `${dir}/rankd.service`, written: false });
  expect(systemctl.calls()).toBe(calls);
});

test.concurrent('install tells the way of the settings and the key that there are, also on the simulated group', async () => {
  using home = new CliHome();
  const dir = home.path('units');
  mkdirSync(dir);
  writeFileSync(home.path('roblox.key'), 'a-platform-key', { mode: 0o600 });
  const { env } = fakeProgram(home, 'systemctl', 'systemd-sysusers');
  const stepsWith = async (yaml: string) => {
    writeFileSync(home.path('rankd.yaml'), yaml);
    return (await home.run(['service', 'install', '--dir', dir], { env })).stderr;
  };
  const real = await stepsWith('group: { id: 7 }\nplatform: { api_key_file: roblox.key }\n');
  expect(real).toContain(`  install -D -m 600 ${home.path('roblox.key')} /etc/rankd/roblox.key\n`);
  expect(real).toContain(`  install -D -m 644 ${home.path('rankd.yaml')} /etc/rankd/rankd.yaml\n`);
  writeFileSync(home.path('other.key'), 'a-platform-key', { mode: 0o600 });
  expect(await stepsWith('group: { id: 7 }\nplatform: { api_key_file: other.key }\n')).toContain(
    '/etc/rankd/rankd.yaml   (and let platform.api_key_file say /etc/rankd/roblox.key there)\n',
  );
  expect(await stepsWith('platform: { kind: simulated }\n')).toContain(
    '  install -D -m 600 /dev/null /etc/rankd/roblox.key   (the group is simulated and needs no key',
  );
});

test.concurrent('install leaves another unit as it is, unless told to replace it', async () => {
  using home = new CliHome();
  const { env } = fakeProgram(home, 'systemctl', 'systemd-sysusers');
  const dir = home.path('units');
  mkdirSync(dir);
  writeFileSync(`${dir}/rankd.service`, 'mine');
  const refused = await home.here(['service', 'install', '--dir', dir], { env });
  expect(refused).toMatchObject({
    code: 4,
    stdout: '',
    stderr: `error: ${dir}/rankd.service is another unit and was left as it is.
try: compare it with \`rankd service print\`, then replace it with --force
`,
  });
  expect(readFileSync(`${dir}/rankd.service`, 'utf8')).toBe('mine');
  expect((await home.here(['service', 'install', '--force', '--dir', dir], { env })).code).toBe(0);
  expect(readFileSync(`${dir}/rankd.service`, 'utf8')).toBe(unitOfThisMachine);
});

test.concurrent('install without root is refused with 77, and without systemd with 3', async () => {
  using home = new CliHome();
  const dir = home.path('units');
  mkdirSync(dir, { mode: 0o500 });
  expect(await runUnprivileged(['service', 'install', '--dir', dir], home.dataDir)).toEqual({
    code: 77,
    stdout: '',
    stderr: `error: This user may not write ${dir}/rankd.service.\ntry: sudo rankd service install\n`,
  });
  const result = await home.here(['service', 'install', '--dir', home.path('none')]);
  expect(result).toMatchObject({ code: 3, stdout: '' });
  expect(result.stderr).toContain('without systemd');
});

test.concurrent('systemd is told that the daemon serves, that all is well again and again, and that it stops', async ({
  expect,
}) => {
  using home = new CliHome();
  const { env, calls } = fakeProgram(home, 'systemd-notify');
  const unit = { ...env, NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: '300000' };
  await using daemon = await DaemonProcess.start(home, { env: unit });
  await expect.poll(calls, { timeout: 15_000 }).toMatch(/^READY=1\n(WATCHDOG=1\n){3,}$/);
  expect(await daemon.stop()).toBe(0);
  expect(calls()).toMatch(/^READY=1\n(WATCHDOG=1\n)+STOPPING=1\n$/);
});

test.concurrent('a daemon that hangs does not say that all is well', async ({ expect }) => {
  using home = new CliHome();
  const { env, calls } = fakeProgram(home, 'systemd-notify');
  const unit = { ...env, NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: '300000' };
  await using daemon = await DaemonProcess.start(home, { env: unit });
  await expect.poll(calls, { timeout: 15_000 }).toContain('WATCHDOG=1');
  daemon.process.kill('SIGSTOP');
  await new Promise((resolve) => setTimeout(resolve, 1_000)); // for a helper that is on its way
  const before = calls();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(calls()).toBe(before);
  daemon.process.kill('SIGCONT');
});

/** Every line of a section that sets something; a directive that stands twice adds up. */
function directives(): Map<string, string> {
  const lines = source.split('\n').filter((line) => /^\w+=/.test(line));
  const set = new Map<string, string>();
  for (const line of lines) {
    const [name = '', value = ''] = [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)];
    set.set(name, [set.get(name), value].filter((part) => part !== undefined).join(' '));
  }
  return set;
}

test('the unit gives the daemon a user of its own, its data and the key, and takes away what it does not need', () => {
  const set = directives();
  expect(set.get('After')).toContain('time-sync.target');
  expect(Object.fromEntries(set)).toMatchObject({
    Type: 'notify',
    NotifyAccess: 'all',
    WatchdogSec: '60',
    ExecReload: '/usr/local/bin/rankd reload',
    User: 'rankd',
    LimitCORE: '0',
    MemoryMax: '1G',
    StateDirectory: 'rankd',
    StateDirectoryMode: '0700',
    LoadCredential: 'platform_api_key:/etc/rankd/roblox.key',
    CapabilityBoundingSet: '',
    NoNewPrivileges: 'yes',
    ProtectSystem: 'strict',
    ProtectHome: 'yes',
    PrivateUsers: 'yes',
    RestrictAddressFamilies: 'AF_INET AF_INET6 AF_UNIX',
    SystemCallFilter: '@system-service ~@privileged @resources',
  });
  for (const absent of ['MemoryDenyWriteExecute', 'DynamicUser']) expect(set.has(absent)).toBe(false);
});

test('systemd understands every line of the unit, and scores its exposure below 2.0', async () => {
  using home = new CliHome();
  const file = home.path('rankd.service');
  writeFileSync(file, unitOfThisMachine);
  const analyze = (...args: string[]) =>
    new Promise<string | undefined>((resolve) => {
      execFile('systemd-analyze', args, (error, stdout, stderr) =>
        resolve(error !== null && 'code' in error && error.code === 'ENOENT' ? undefined : stdout + stderr),
      );
    });
  const score = await analyze('security', '--offline=true', file);
  if (score === undefined) return; // a machine without systemd; what counts is held by the test above
  expect(await analyze('verify', file)).toBe('');
  const [, exposure] = /Overall exposure level for rankd\.service: ([\d.]+)/.exec(score) ?? [];
  expect(Number(exposure)).toBeLessThan(2);
});
