import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { systems } from '../../src/base/system.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { blocksOf, pages, pagesToType } from '../support/readme-commands.ts';
import { CliHome } from '../support/run-cli.ts';
import { runUnprivileged } from '../support/run-unprivileged.ts';

const source = readFileSync(new URL('../../config/rankd.service', import.meta.url), 'utf8');
const binary = fileURLToPath(new URL('../../bin/rankd.js', import.meta.url));
const localUnit = source.replaceAll('/usr/local/bin/rankd ', `${process.execPath} ${binary} `);

/** Puts fake programs first on the path. They record their arguments in `calls`. */
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

test.concurrent('service print prints config/rankd.service with the paths of this machine, also with --json', async () => {
  using home = new CliHome();
  expect(await home.run(['service', 'print'])).toMatchObject({ code: 0, stdout: localUnit });
  expect(await home.json('service', 'print')).toEqual({ v: 1, unit: localUnit });
});

test.concurrent('install writes a world-readable unit, makes systemd load it, and prints the next steps', async () => {
  using home = new CliHome();
  const systemctl = fakeProgram(home, 'systemctl', 'systemd-sysusers');
  const dir = home.path('units');
  mkdirSync(dir);
  const { code, stdout, stderr } = await home.run(['service', 'install', '--dir', dir], { env: systemctl.env });
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: `FIELD    VALUE\nunit     ${dir}/rankd.service\nwritten  yes\n`,
  });
  expect(stderr).toContain('done: the user rankd exists\ndone: systemctl daemon-reload\n');
  expect(stderr).toMatch(
    /^next:\nIf your games already have keys, copy them to the service:\n {2}.*rankd backup keys\.db && .*rankd restore -y --data-dir .+ keys\.db$/m,
  );
  const after = (sudo: string) => `
Type this, paste the Roblox key, press Enter, then press Ctrl-D:
  ${sudo}install -D -m 600 --owner=rankd /dev/stdin /etc/rankd/roblox.key
Put the settings into /etc/rankd/rankd.yaml, then start the service:
  ${sudo}systemctl enable --now rankd
`;
  expect(stderr).toContain(after(''));
  const calls = '--inline u rankd - "rankd, the rank service of a Roblox group" /var/lib/rankd\ndaemon-reload\n';
  expect(systemctl.calls()).toBe(calls);
  expect(readFileSync(`${dir}/rankd.service`, 'utf8')).toBe(localUnit);
  expect((statSync(`${dir}/rankd.service`).mode & 0o777).toString(8)).toBe('644');

  const bySudo = await home.run(['service', 'install', '--dir', dir], { env: { ...systemctl.env, SUDO_USER: 'ann' } });
  expect(bySudo.stderr).toContain(after('sudo '));
  expect(bySudo.stderr).toMatch(/^ {2}sudo -u ann .*rankd backup keys\.db && sudo .*rankd restore -y /m);

  const again = await home.run(['service', 'install', '--dir', dir, '--json'], { env: systemctl.env });
  expect(again).toMatchObject({ code: 0, stderr: '' });
  expect(again.json()).toEqual({ v: 1, unit: `${dir}/rankd.service`, written: false });
  expect(systemctl.calls()).toBe(calls);
});

test.concurrent('install prints where to put existing settings and keys, even on the simulated group', async () => {
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
  expect(real).toContain(`  install -D -m 600 --owner=rankd ${home.path('roblox.key')} /etc/rankd/roblox.key\n`);
  expect(real).toContain(`  install -D -m 644 ${home.path('rankd.yaml')} /etc/rankd/rankd.yaml\n`);
  writeFileSync(home.path('other.key'), 'a-platform-key', { mode: 0o600 });
  expect(await stepsWith('group: { id: 7 }\nplatform: { api_key_file: other.key }\n')).toContain(
    '/etc/rankd/rankd.yaml\nIn /etc/rankd/rankd.yaml, set platform.api_key_file to /etc/rankd/roblox.key, then start the service:\n',
  );
  expect(await stepsWith('platform: { kind: simulated }\n')).toContain(
    'The group is simulated and needs no key, but the unit requires the file:\n' +
      '  install -D -m 600 --owner=rankd /dev/null /etc/rankd/roblox.key\n',
  );
});

test.concurrent('the commands of docs/hosting.md for systemd are the ones that install prints', async () => {
  using home = new CliHome();
  const dir = home.path('units');
  mkdirSync(dir);
  writeFileSync(home.path('roblox.key'), 'a-platform-key', { mode: 0o600 });
  writeFileSync(home.path('rankd.yaml'), 'group: { id: 7 }\nplatform: { api_key_file: roblox.key }\n');
  const { env } = fakeProgram(home, 'systemctl', 'systemd-sysusers');
  const { stderr } = await home.run(['service', 'install', '--dir', dir], { env });
  const [, left = ''] = stderr.replaceAll(`${home.cwd}/`, '').split('next:\n');
  const steps = [...left.matchAll(/^ {2}(.+)$/gm)].flatMap(([, step = '']) => step.split(' && '));
  const typed = pagesToType.systemd().map((line) => line.replace(/^sudo /, ''));
  expect(typed.slice(2).filter((line) => line !== 'rankd service install')).toEqual(steps);
});

test.concurrent('the systemd commands in docs/hosting.md put settings, Roblox key and game keys of a clone where the service reads them', async () => {
  using home = new CliHome();
  const { env, calls } = fakeProgram(home, 'systemctl', 'systemd-sysusers', 'npm', 'git');
  const root = home.path('root');
  mkdirSync(`${root}/opt/rankd`, { recursive: true }); // on a real machine, git creates it
  mkdirSync(`${root}/etc/systemd/system`, { recursive: true });
  writeFileSync(home.path('roblox.key'), 'a-platform-key', { mode: 0o600 });
  writeFileSync(home.path('rankd.yaml'), 'platform: { kind: simulated }\n');
  const secret = await home.createKey();
  const { code, stderr } = await typedAsRoot(home, pagesToType.systemd(), { root, env });
  expect(code, stderr).toBe(0);
  expect(calls()).toMatch(/ci\ninstall --global \.\n[\s\S]*daemon-reload\nenable --now rankd\n$/);
  const at = (name: string) => `${root}/etc/rankd/${name}`;
  expect([readFileSync(at('roblox.key'), 'utf8'), statSync(at('roblox.key')).mode & 0o777]).toEqual([
    'a-platform-key',
    0o600,
  ]);
  const args = ['--config', at('rankd.yaml'), '--data-dir', `${root}/var/lib/rankd`];
  await using daemon = await DaemonProcess.start(home, { args });
  expect(await daemon.verify(secret)).toMatchObject({ status: 200 });
});

/**
 * Runs the lines of a page in a shell, but without sudo, as a single user, and with all system folders below `root`.
 */
async function typedAsRoot(
  home: CliHome,
  lines: string[],
  { root, env }: { root: string; env: Record<string, string> },
): ReturnType<CliHome['shell']> {
  const script = lines
    .map((line) =>
      line
        .replaceAll(/sudo (-u rankd )?| --owner=rankd/g, '')
        .replace(/service (install|remove)/, `$& --dir ${root}/etc/systemd/system`),
    )
    .join('\n')
    .replaceAll(/ \/(?=opt|etc|var)/g, ` ${root}/`)
    .replaceAll(/(?<=^| )rankd (?=backup|service|restore)/gm, `'${process.execPath}' '${binary}' `);
  return await home.shell(`set -eu\n${script}`, { env });
}

test.concurrent('the upgrade commands in docs/hosting.md make a backup, then build while the service is stopped; the removal commands leave no files', async () => {
  using home = new CliHome();
  const { env, calls } = fakeProgram(home, 'systemctl', 'systemd-sysusers', 'npm', 'git', 'userdel');
  const root = home.path('root');
  for (const folder of ['opt/rankd', 'etc/systemd/system', 'etc/rankd', 'var/lib'])
    mkdirSync(`${root}/${folder}`, { recursive: true });
  await home.createKey();
  renameSync(home.dataDir, `${root}/var/lib/rankd`);
  await home.here(['service', 'install', '--dir', `${root}/etc/systemd/system`], { env });
  const before = calls();
  const updated = await typedAsRoot(home, pagesToType.update(), { root, env });
  expect(updated.code, updated.stderr).toBe(0);
  expect(calls().slice(before.length)).toBe('stop rankd\npull\nci\nstart rankd\n');
  expect((await home.here(['restore', '--dry-run', `${root}/var/lib/rankd/before-update.db`])).stdout).toMatch(
    /^keys +1$/m,
  );

  const removed = await typedAsRoot(home, pagesToType.removal(), { root, env });
  expect(removed.code, removed.stderr).toBe(0);
  expect(calls()).toMatch(/\ndisable --now rankd\ndaemon-reload\nuninstall --global rankd\nrankd\n$/);
  const left = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort();
  expect(left).toEqual(['etc', 'etc/systemd', 'etc/systemd/system', 'opt', 'var', 'var/lib']);
});

test.concurrent('the documented Docker commands reach the rankd in the container, and transfer the earlier keys', async () => {
  using home = new CliHome();
  using container = new CliHome();
  const secret = await home.createKey();
  const { env } = fakeProgram(home, 'npm');
  const rankd = `'${process.execPath}' '${binary}'`;
  const inContainer = `cd '${container.cwd}' && RANKD_DATA_DIR='${container.dataDir}' exec ${rankd}`;
  writeFileSync(`${home.path('programs')}/rankd`, `#!/bin/sh\nexec ${rankd} "$@"\n`, { mode: 0o755 });
  writeFileSync(
    `${home.path('programs')}/docker`,
    // Supports only the forms that these lines use: run --rm -v HERE:THERE:ro SERVICE COMMAND…, and exec SERVICE rankd
    // COMMAND….
    `#!/bin/sh
set -eu
[ "$1" = compose ]
case "$2" in
  run) [ "$3$4" = --rm-v ]; here=\${5%%:*}; there=\${5#*:}; [ "$6" = rankd ]; shift 6
    [ "$3" = "\${there%:ro}" ]; set -- "$1" "$2" "$here" ;;
  exec) [ "$3$4" = rankdrankd ]; shift 4 ;;
esac
${inContainer} "$@"
`,
    { mode: 0o755 },
  );
  const example = readFileSync(new URL('../../config/compose.example.yaml', import.meta.url), 'utf8');
  const [takeAlong = ''] = /rankd backup .* && docker compose run .*/.exec(example) ?? [];
  const ran = await home.shell(takeAlong, { env });
  expect(ran.code, ran.stderr).toBe(0);
  await using daemon = await DaemonProcess.start(container);
  expect(await daemon.verify(secret)).toMatchObject({ status: 200 });
  const named = ['README.md', ...pages, 'config/compose.example.yaml'].flatMap(
    (page) =>
      readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8').match(/docker compose exec [^`\n…]+/g) ?? [],
  );
  expect(named).toEqual(
    expect.arrayContaining([expect.stringMatching(/ reload$/), expect.stringMatching(/ dashboard$/)]),
  );
  for (const line of new Set(named)) {
    const { code, stderr } = await home.shell(line, { env });
    expect({ line, code, stderr }).toMatchObject({ code: 0 });
  }
  expect(await container.json('key', 'list')).toMatchObject({ keys: [{ name: 'game' }, { name: 'my-game' }] });
});

test.concurrent('remove stops the service and removes its unit; data and settings stay', async () => {
  using home = new CliHome();
  const dir = home.path('units');
  mkdirSync(dir);
  const { env, calls } = fakeProgram(home, 'systemctl', 'systemd-sysusers');
  await home.here(['service', 'install', '--dir', dir], { env });
  await home.json('key', 'create', 'abc');
  const removed = await home.here(['service', 'remove', '--dir', dir], { env });
  expect(removed).toMatchObject({ code: 0, stdout: `FIELD    VALUE\nunit     ${dir}/rankd.service\nremoved  yes\n` });
  expect(calls().split('\n').slice(-3)).toEqual(['disable --now rankd', 'daemon-reload', '']);
  expect(readdirSync(dir)).toEqual([]);
  expect(await home.json('key', 'list')).toMatchObject({ keys: [{ name: 'abc' }] });
  expect((await home.here(['service', 'remove', '--dir', dir], { env })).code).toBe(3);
});

/** Returns the elements that are never closed. Fails the test if elements are not nested correctly. */
function openElements(xml: string): string[] {
  const open: string[] = [];
  for (const [, slash, name = '', self] of xml.matchAll(/<(\/?)(\w+)[^<>]*?(\/?)>/g)) {
    if (slash !== '') expect(open.pop()).toBe(name);
    else if (self === '') open.push(name);
  }
  return open;
}

function textsOf(xml: string, name: string): string[] {
  const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"' };
  const decode = (text: string) => text.replaceAll(/&(\w+);/g, (_, entity: string) => entities[entity] ?? '?');
  return [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, 'g'))].map(([, text = '']) => decode(text));
}

test.concurrent('on macOS, install writes an agent for this user that serves these data and settings, and remove stops and removes it', async () => {
  using home = new CliHome();
  const { env, calls } = fakeProgram(home, 'launchctl');
  const options = { env, system: systems.macos, dataDir: home.path('a & b') };
  writeFileSync(home.path('rankd.yaml'), 'platform: { kind: simulated }\n');
  const installed = await home.here(['service', 'install'], options);
  const file = `${home.folder}/Library/LaunchAgents/rankd.plist`;
  expect(installed).toMatchObject({ code: 0, stdout: `FIELD    VALUE\nagent    ${file}\nwritten  yes\n` });
  expect(installed.stderr).toContain(`launchctl bootstrap gui/${process.getuid?.()} ${file}`);
  const [install = '', start = ''] = pagesToType.launchd();
  expect(install).toBe('npx rankd service install');
  expect((await home.shell(start, { env })).code).toBe(0);
  expect(calls()).toBe(`bootstrap gui/${process.getuid?.()} ${file}\n`);
  const plist = readFileSync(file, 'utf8');
  expect(openElements(plist)).toEqual([]);
  const log = `${home.folder}/Library/Logs/rankd.log`;
  const line = [process.execPath, binary, 'serve', '--data-dir', options.dataDir, '--config', home.path('rankd.yaml')];
  expect(textsOf(plist, 'string')).toEqual(['rankd', ...line, log, log]);
  expect(textsOf(plist, 'key')).toEqual(expect.arrayContaining(['RunAtLoad', 'KeepAlive']));

  expect((await home.here(['service', 'remove'], options)).code).toBe(0);
  expect(calls()).toContain(`\nbootout gui/${process.getuid?.()}/rankd\n`);
  expect(existsSync(file)).toBe(false);
});

test.concurrent('on Windows, install writes a task that runs when this user logs on, and prints the commands that it could not run', async () => {
  using home = new CliHome();
  const env = { USERDOMAIN: 'PC', USERNAME: 'Ann & Bob', SystemRoot: 'C:\\Windows' };
  const options = { env, system: systems.windows, dataDir: home.path('my data') };
  const installed = await home.here(['service', 'install'], options);
  const file = `${options.dataDir}/rankd-task.xml`;
  expect(installed.code).toBe(0);
  expect(installed.stderr).toContain(`run \`schtasks /Create /TN rankd /XML "${file}" /F\` yourself`);
  expect(installed.stderr).toContain('schtasks /Run /TN rankd');
  expect(blocksOf('docs/hosting.md', 'powershell')).toContain('npx rankd service install\nschtasks /Run /TN rankd\n');
  expect(installed.stderr).toContain('There is no configuration yet: run rankd init');
  const [mark, xml = ''] = [readFileSync(file).subarray(0, 2), readFileSync(file, 'utf16le').slice(1)];
  expect(mark).toEqual(Buffer.from([0xff, 0xfe]));
  expect(openElements(xml)).toEqual([]);
  expect(textsOf(xml, 'UserId')).toEqual(['PC\\Ann & Bob', 'PC\\Ann & Bob']);
  expect(textsOf(xml, 'LogonType')).toEqual(['InteractiveToken']);
  expect(textsOf(xml, 'ExecutionTimeLimit')).toEqual(['PT0S']);
  expect([textsOf(xml, 'Command'), textsOf(xml, 'Arguments')]).toEqual([
    [process.execPath],
    [`${binary} serve --data-dir "${options.dataDir}"`],
  ]);
  expect((await home.here(['service', 'print', '--json'], options)).json()).toEqual({ v: 1, unit: xml });
  const again = await home.here(['service', 'install', '--json'], options);
  expect(again.json()).toEqual({ v: 1, unit: file, written: false });

  // if schtasks exists, install creates the task itself
  const tasks = fakeProgram(home, 'schtasks', 'C:\\Windows\\System32\\schtasks.exe');
  const withTasks = { ...options, env: { ...env, ...tasks.env } };
  const made = await home.here(['service', 'install', '--force'], withTasks);
  expect(made.stderr).not.toContain('yourself');

  const removed = await home.here(['service', 'remove'], options);
  expect(removed).toMatchObject({ code: 0, stdout: `FIELD    VALUE\ntask     ${file}\nremoved  yes\n` });
  expect(removed.stderr).toContain('schtasks /Delete /TN rankd /F');
  expect(existsSync(file)).toBe(false);
});

test.concurrent('install overwrites a different unit only with --force', async () => {
  using home = new CliHome();
  const { env } = fakeProgram(home, 'systemctl', 'systemd-sysusers');
  const dir = home.path('units');
  mkdirSync(dir);
  writeFileSync(`${dir}/rankd.service`, 'mine');
  const refused = await home.here(['service', 'install', '--dir', dir], { env });
  expect(refused).toMatchObject({
    code: 4,
    stdout: '',
    stderr: `error: ${dir}/rankd.service is a different unit and was not changed.
try: compare it with \`rankd service print\`, then replace it with --force
`,
  });
  expect(readFileSync(`${dir}/rankd.service`, 'utf8')).toBe('mine');
  expect((await home.here(['service', 'install', '--force', '--dir', dir], { env })).code).toBe(0);
  expect(readFileSync(`${dir}/rankd.service`, 'utf8')).toBe(localUnit);
});

test.concurrent('install exits with 77 without root, and with 3 if the folder is missing', async () => {
  using home = new CliHome();
  const dir = home.path('units');
  mkdirSync(dir, { mode: 0o500 });
  expect(await runUnprivileged(['service', 'install', '--dir', dir], home.dataDir)).toEqual({
    code: 77,
    stdout: '',
    stderr: `error: This user does not have permission to write to ${dir}/rankd.service.\ntry: sudo rankd --data-dir ${home.dataDir} service install --dir ${dir}\n`,
  });
  const closed = home.path('closed');
  mkdirSync(closed);
  writeFileSync(`${closed}/rankd.service`, '');
  chmodSync(closed, 0o500);
  expect(await runUnprivileged(['service', 'remove', '--dir', closed], home.dataDir)).toMatchObject({
    code: 77,
    stderr: `error: This user has no permission to remove ${closed}/rankd.service.\ntry: sudo rankd --data-dir ${home.dataDir} service remove --dir ${closed}\n`,
  });
  const result = await home.here(['service', 'install', '--dir', home.path('none')]);
  expect(result).toMatchObject({ code: 3, stdout: '' });
  expect(result.stderr).toContain(
    `${home.path('none')} is not a folder.\ntry: create it, or name a different folder with --dir\n`,
  );
});

test.concurrent('the daemon notifies systemd when it is ready, regularly while it works, and when it stops', async ({
  expect,
}) => {
  using home = new CliHome();
  const { env, calls } = fakeProgram(home, 'systemd-notify');
  const unit = { ...env, NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: '300000' };
  await using daemon = await DaemonProcess.start(home, { env: unit });
  await expect.poll(calls).toMatch(/^READY=1\n(WATCHDOG=1\n){3,}$/);
  expect(await daemon.stop()).toBe(0);
  expect(calls()).toMatch(/^READY=1\n(WATCHDOG=1\n)+STOPPING=1\n$/);
});

test.concurrent('a daemon that hangs stops notifying systemd', async ({ expect }) => {
  using home = new CliHome();
  const { env, calls } = fakeProgram(home, 'systemd-notify');
  const unit = { ...env, NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: '300000' };
  await using daemon = await DaemonProcess.start(home, { env: unit });
  await expect.poll(calls).toContain('WATCHDOG=1');
  daemon.process.kill('SIGSTOP');
  await new Promise((resolve) => setTimeout(resolve, 1_000)); // time for a notification already on its way
  const before = calls();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(calls()).toBe(before);
  daemon.process.kill('SIGCONT');
});

/** Returns the unit's settings, with the values of a repeated directive joined. */
function directives(): Map<string, string> {
  const lines = source.split('\n').filter((line) => /^\w+=/.test(line));
  const set = new Map<string, string>();
  for (const line of lines) {
    const [name = '', value = ''] = [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)];
    set.set(name, [set.get(name), value].filter((part) => part !== undefined).join(' '));
  }
  return set;
}

test('the unit gives the daemon a separate user, its data and the key, and removes all other permissions', () => {
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

test('systemd accepts every line of the unit, and scores its exposure below 2.0', async () => {
  using home = new CliHome();
  const file = home.path('rankd.service');
  writeFileSync(file, localUnit);
  const analyze = (...args: string[]) =>
    new Promise<string | undefined>((resolve) => {
      execFile('systemd-analyze', args, (error, stdout, stderr) =>
        resolve(error !== null && 'code' in error && error.code === 'ENOENT' ? undefined : stdout + stderr),
      );
    });
  const score = await analyze('security', '--offline=true', file);
  if (score === undefined) return; // this machine has no systemd; the test above covers the settings
  expect(await analyze('verify', file)).toBe('');
  const [, exposure] = /Overall exposure level for rankd\.service: ([\d.]+)/.exec(score) ?? [];
  expect(Number(exposure)).toBeLessThan(2);
});
