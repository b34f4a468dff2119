import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const binary = fileURLToPath(new URL('../../bin/rankd.js', import.meta.url));

test("README's own commands change a rank, show it, and list it in the history", async () => {
  using home = new CliHome();
  await using daemon = await DaemonProcess.start(home);
  const [, section = ''] = readme.split('## First rank change');
  const [, commands = ''] = /```sh\n(.+?)```/s.exec(section) ?? [];
  const script = commands
    .replaceAll('npx rankd', `'${process.execPath}' '${binary}'`)
    .replaceAll('http://127.0.0.1:7265', daemon.url)
    .replaceAll("-d '", "-w '\\n' -d '");
  const { stdout, stderr, status } = await shell(script, home);
  expect(status, stderr).toBe(0);
  const [, answer = ''] = /`(\{"success":true.+?\})`/.exec(section) ?? [];
  expect(stdout).toMatch(/^"ws_\w+"$/m);
  expect(stdout.split('\n')).toContain(answer);
  expect(stdout).toMatch(/^20 +Officer/m);
  expect(stdout).toMatch(/ applied +Newcomer \(1001\)/);
});

async function shell(script: string, { folder, dataDir, cwd }: CliHome) {
  const env = { PATH: process.env['PATH'], HOME: folder, RANKD_DATA_DIR: dataDir };
  return spawnSync('bash', ['-euc', script], { cwd, env, encoding: 'utf8' });
}
