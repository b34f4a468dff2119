import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { documentedPort, pagesToType } from '../support/readme-commands.ts';
import { binary, CliHome } from '../support/run-cli.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

test.concurrent("README's own commands change a rank, show it, and list it in the history, in under a minute", async () => {
  using home = new CliHome();
  const startedAt = performance.now();
  await using daemon = await DaemonProcess.start(home);
  const stdout = await typed(pagesToType.trial(), { home, daemon });
  expect(performance.now() - startedAt).toBeLessThan(60_000);
  const [, answer = ''] = /`(\{"success":true.+?\})`/.exec(readme) ?? [];
  expect(stdout).toMatch(/^"ws_\w+"$/m);
  expect(stdout.split('\n')).toContain(answer);
  expect(stdout).toMatch(/^20 +Officer/m);
  expect(stdout).toMatch(/ applied \(simulated\) +Builder \(1003\) +Newcomer \(1001\)/);
});

test.concurrent('The commands of docs/go-live.md for a real group, typed after those of the trial, set it up, serve it, and change a first rank; no key of the trial is accepted there', async () => {
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
    await using daemon = await DaemonProcess.start(home, { env });
    expect(await typed(requests, { home, daemon })).toContain('{"success":true,');
    expect(roblox.journal.writes(1001).length).toBeGreaterThan(0);
    expect(await daemon.verify(readFileSync(home.path('trial.key'), 'utf8').trim())).toMatchObject({ status: 401 });
  } finally {
    await roblox.close();
  }
});

/** What a shell prints that gets these commands; throws with what it says where one fails. */
async function typed(
  commands: string[],
  { home, daemon, env = {} }: { home: CliHome; daemon?: DaemonProcess; env?: Record<string, string> },
): Promise<string> {
  const script = commands
    .join('\n')
    .replaceAll('npx rankd', `'${process.execPath}' '${binary}'`)
    .replaceAll(`http://127.0.0.1:${documentedPort}`, daemon?.url ?? '')
    .replaceAll("-d '", "-w '\\n' -d '");
  const { code, stdout, stderr } = await home.shell(`set -eu\n${script}`, { env });
  expect(code, stderr).toBe(0);
  return stdout;
}
