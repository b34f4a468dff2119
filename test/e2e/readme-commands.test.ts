import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { blocksOf, documentedPort, pagesToType } from '../support/readme-commands.ts';
import { binary, CliHome } from '../support/run-cli.ts';
import type { Serving } from '../support/serving.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

test.concurrent('the commands in README change a rank, and the history lists it', async () => {
  using home = new CliHome();
  await using daemon = await DaemonProcess.start(home);
  const stdout = await typed([...pagesToType.trial(), 'npx rankd history list'], { home, daemon });
  const [, answer = ''] = /^\{"success":true,"message":"(.+?)"/m.exec(stdout) ?? [];
  expect(readme).toContain(`\`${answer}\``);
  expect(stdout).toMatch(/ applied \(simulated\) +Builder \(1003\) +Newcomer \(1001\)/);
});

test.concurrent('after a trial, the commands in docs/go-live.md set up and serve a real group and change a rank; no trial key is accepted', async () => {
  const [init = '', serve = '', ...requests] = pagesToType.goLive();
  const [, groupId] = /--group (\d+)/.exec(init) ?? [];
  const roblox = await startFakeOpenCloud({ groupId: Number(groupId) });
  try {
    using home = new CliHome();
    const trial = pagesToType.trial().filter((command) => !command.startsWith('curl'));
    await typed(trial, { home });
    const env = { RANKD_PLATFORM_BASE_URL: roblox.baseUrl, RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl };
    writeFileSync(home.path('roblox.key'), roblox.apiKey, { mode: 0o600 });
    await typed([init], { home, env });
    expect(serve).toBe('npx rankd serve');
    await using daemon = await DaemonHere.start(home, { env });
    expect(await typed(requests, { home, daemon })).toContain('{"success":true,');
    expect(roblox.journal.writes(1001).length).toBeGreaterThan(0);
    expect(await daemon.verify(readFileSync(home.path('trial.key'), 'utf8').trim())).toMatchObject({ status: 401 });
  } finally {
    await roblox.close();
  }
});

test.concurrent('next to a daemon, the commands in docs/daily.md make a backup, undo a leaked key’s changes, and restore the backup', async () => {
  using home = new CliHome();
  const secret = await home.createKey('my-game');
  await using daemon = await DaemonHere.start(home);
  const [backup = '', check = '', restore = ''] = pagesToType.backup();
  expect(await typed([backup, check], { home })).toMatch(/^keys +1$/m);
  await daemon.rank(secret);
  const rank = async () =>
    (await home.json<{ member: { roles: Array<{ rank: number }> } }>('rank', 'show', '1001')).member.roles;
  expect(await rank()).toContainEqual(expect.objectContaining({ rank: 20 }));
  expect(await typed(pagesToType.leak(), { home })).toContain('would be put back');
  expect(await rank()).not.toContainEqual(expect.objectContaining({ rank: 20 }));
  expect(await daemon.verify(secret)).toMatchObject({ status: 401 });
  await daemon.stop();
  await typed([restore], { home });
  await using restarted = await DaemonHere.start(home);
  expect(await restarted.verify(secret)).toMatchObject({ status: 200 });
});

test.concurrent('the commands in docs/daily.md promote one member and a list of members, show who did it, and suspend one for some days', async () => {
  using home = new CliHome();
  await using _daemon = await DaemonHere.start(home);
  expect(await typed(pagesToType.promotion(), { home })).toMatch(
    /is now Officer .*\n.* is now Captain .*\n[\s\S]*^50 +Captain/m,
  );
  const [list = ''] = blocksOf('docs/daily.md', 'text');
  writeFileSync(home.path('passed.txt'), list);
  expect(await typed(pagesToType.training(), { home })).toMatch(/: of 2 members, 2 changed\./);
  expect(await typed(pagesToType.whoDidThat(), { home })).toMatch(/passed the quiz[\s\S]*would be put back/);
  expect(await typed(pagesToType.suspension(), { home })).toMatch(/1001/);
});

test.concurrent('the command and the file in docs/settings.md declare a key that works', async () => {
  using home = new CliHome();
  const hash = (await typed(pagesToType.declaredKey(), { home })).trim();
  const [yaml = ''] = blocksOf('docs/settings.md', 'yaml').filter((block) => block.includes('hash:'));
  writeFileSync(home.path('rankd.yaml'), yaml.replace(/hash: \w+/, `hash: ${hash}`));
  await using daemon = await DaemonHere.start(home);
  const secret = readFileSync(home.path('my-game.key'), 'utf8').trim();
  expect(await daemon.verify(secret, 920587237)).toMatchObject({ status: 200 });
});

test.concurrent('the commands in docs/hosting.md set up and serve a second group; those in docs/troubleshooting.md inspect it', async () => {
  const [mkdir = '', init = '', serve = ''] = pagesToType.secondGroup();
  const [, groupId] = /--group (\d+)/.exec(init) ?? [];
  const roblox = await startFakeOpenCloud({ groupId: Number(groupId) });
  try {
    using home = new CliHome();
    const env = { RANKD_PLATFORM_BASE_URL: roblox.baseUrl, RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl };
    writeFileSync(home.path('second.key'), roblox.apiKey, { mode: 0o600 });
    await using _first = await DaemonHere.start(home);
    await typed([mkdir, init], { home, env });
    const [, , ...flags] = serve
      .replaceAll('~', home.folder)
      .replace(/ --port \d+$/, '')
      .split(' ');
    await using _second = await DaemonHere.start(home, { args: flags, env });
    const look = pagesToType.lookUp().map((command) => `${command} ${flags.join(' ')}`);
    expect(await typed(look, { home, env })).toContain(`(${groupId})`);
  } finally {
    await roblox.close();
  }
});

/**
 * Runs the commands in a shell, with `-y` for those that ask, and resolves with their output. The test fails if a
 * command does.
 */
async function typed(
  commands: string[],
  { home, daemon, env = {} }: { home: CliHome; daemon?: Serving; env?: Record<string, string> },
): Promise<string> {
  const script = commands
    .join('\n')
    .replaceAll(/^(?=rankd )/gm, 'npx ')
    .replaceAll(/^npx rankd (?:key revoke|history undo|restore) (?!.*--dry-run)/gm, '$&-y ')
    .replaceAll('npx rankd', `'${process.execPath}' '${binary}'`)
    .replaceAll(`http://127.0.0.1:${documentedPort}`, daemon?.url ?? '')
    .replaceAll("-d '", "-w '\\n' -d '");
  const { code, stdout, stderr } = await home.shell(`set -eu\n${script}`, { env });
  expect(code, stderr).toBe(0);
  return stdout;
}
