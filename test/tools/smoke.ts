import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { type FakeOpenCloud, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { installPackage } from '../support/installed-package.ts';
import { pagesToType } from '../support/readme-commands.ts';
import { type Program, RankdByHand } from './rankd-by-hand.ts';

/**
 * `npm run smoke`: tests the built rankd on any operating system, including Windows. Runs the commands from README on
 * the simulated group, and then those from docs/go-live.md and for daily operation on a fake Open Cloud. Reports each
 * step; exits with 1 if one fails.
 */
const { node } = new Command('npm run smoke --')
  .description(
    'Installs the last build as a package, makes a first rank change, runs the commands of daily use, and reports failures.',
  )
  .option('--node <file>', 'the Node.js that runs it', process.execPath)
  .parse()
  .opts<{ node: string }>();

const folder = mkdtempSync(join(tmpdir(), 'rankd-smoke-'));
let failures = 0;
try {
  const program = { node, script: installPackage(newFolder('package')) };
  await onSimulatedGroup(program);
  await onRealGroup(program);
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
process.stdout.write(failures === 0 ? 'Everything worked.\n' : `${failures} of these failed.\n`);
process.exitCode = failures === 0 ? 0 : 1;

async function onSimulatedGroup(program: Program): Promise<void> {
  const rankd = await RankdByHand.open({ program, folder: newFolder('simulated') });
  try {
    await step('rankd version', () => rankd.run('version'));
    await step('rankd serve', () => rankd.serve());
    for (const line of pagesToType.trial().map((typed) => typed.replace('npx ', ''))) {
      await step(line, () => (line.startsWith('curl') ? rankd.request(line) : rankd.run(line)));
    }
    const shown = { 'rankd rank show 1001': /^20 +Officer/m, 'rankd history list': /Newcomer/ };
    for (const [line, expected] of Object.entries(shown)) await step(line, () => rankd.run(line, { expected }));
  } finally {
    await step('stop the daemon', () => rankd.stop());
  }
}

async function onRealGroup(program: Program): Promise<void> {
  const [init = '', , rank = ''] = pagesToType.goLive();
  const [, groupId] = /--group (\d+)/.exec(init) ?? [];
  const roblox = await startFakeOpenCloud({ groupId: Number(groupId) });
  const env = {
    RANKD_PLATFORM_BASE_URL: roblox.baseUrl,
    RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl,
    RANKD_PLATFORM_USERS_BASE_URL: roblox.usersBaseUrl,
  };
  const rankd = await RankdByHand.open({ program, folder: newFolder('real'), env });
  try {
    writeFileSync(rankd.path('roblox.key'), roblox.apiKey, { mode: 0o600 });
    await step(init.replace('npx ', ''), () => rankd.run(init));
    await beforeItServes(rankd);
    await step('rankd serve', () => rankd.serve());
    await step(rank, () => rankd.request(rank));
    await whileItServes(rankd, rank);
    await step('kill the daemon during a change', () => killAmidChange(rankd, { roblox, request: rank }));
    await step('rankd status, after the daemon was killed', () => rankd.run('status', { code: 69 }));
    await step('rankd serve, again', () => rankd.serve());
    await step('it determines the outcome of the change', () => reconciled(rankd));
    await step('the same request, again', () => rankd.request(rank));
    await step('stop the daemon', () => rankd.stop());
    await afterItServed(rankd);
    await step('rankd serve, on the restored database', () => rankd.serve());
    await step('the same request, after the restore', () => rankd.request(rank));
  } finally {
    await step('stop the daemon', () => rankd.stop());
    await roblox.close();
  }
}

async function beforeItServes(rankd: RankdByHand): Promise<void> {
  await runCommand(rankd, 'config check');
  await runCommand(rankd, 'group show', /acting/);
  await runCommand(rankd, 'group roles', /Officer/);
  await runCommand(rankd, 'rank test 1001 20', /ok/);
  await runCommand(rankd, 'doctor', /\bok +group\b/);
  await runCommand(rankd, 'service print', /serve/);
}

async function whileItServes(rankd: RankdByHand, request: string): Promise<void> {
  await runCommand(rankd, 'status', /running/);
  await runCommand(rankd, 'health --ready', /^ok/);
  await runCommand(rankd, 'doctor', /daemon/);
  await runCommand(rankd, 'rank promote 1002 --reason smoke', /now/);
  await runCommand(rankd, 'rank set @Newcomer Captain', /now Captain/);
  writeFileSync(rankd.path('passed.txt'), 'Patrol_Pat # on Saturday\r\n1006\r\n');
  await runCommand(rankd, 'rank set Trainee --file passed.txt -y', /of 2 members, 2 changed/);
  await runCommand(rankd, 'rank suspend 1002 --for 2d');
  await runCommand(rankd, 'suspension list', /Patrol_Pat|1002/);
  await runCommand(rankd, 'rank unsuspend 1002');
  await runCommand(rankd, 'history list', /Captain/);
  await runCommand(rankd, 'history undo --user 1002 --since 1h -y');
  await runCommand(rankd, 'game write Adonis', /Adonis/);
  await runCommand(rankd, 'script --out Rankd.luau', /Rankd\.luau/);
  writeFileSync(rankd.path('bot.url'), 'https://93.184.215.14/hook\r\n');
  await runCommand(rankd, 'webhook add bot --url-file bot.url --no-test --out bot.secret');
  await runCommand(rankd, 'webhook list', /bot +standard +enabled/);
  await runCommand(rankd, 'webhook remove bot -y');
  await runCommand(rankd, 'backup smoke.db', /smoke\.db/);
  await runCommand(rankd, 'key create spare --out spare.key');
  await runCommand(rankd, 'key list', /spare/);
  const settings = rankd.path('rankd.yaml');
  const before = readFileSync(settings, 'utf8');
  writeFileSync(settings, before.replace(/^ {2}#?rank: \d+$/m, '  rank: 0'));
  await step('rankd reload, of a changed rankd.yaml', () => rankd.run('reload', { expected: /limits\.rank/ }));
  writeFileSync(settings, before.replace('group:', 'grup:'));
  await step('rankd reload, of a rankd.yaml with a mistake', () => rankd.run('reload', { code: 78 }));
  writeFileSync(settings, before);
  await runCommand(rankd, 'reload');
  await step('the request, again', () => rankd.request(request));
}

async function killAmidChange(
  rankd: RankdByHand,
  { roblox, request }: { roblox: FakeOpenCloud; request: string },
): Promise<void> {
  const before = roblox.journal.writes().length;
  roblox.latencyMs = 500;
  const asked = rankd.request(request.replace(/"newRankId":\d+/, '"newRankId":10')).then(
    () => 'The change ended before the daemon was killed.',
    () => undefined, // as expected, because the daemon was killed
  );
  await until(async () => roblox.journal.writes().length > before);
  await rankd.kill();
  roblox.latencyMs = 0;
  const problem = await asked;
  if (problem !== undefined) throw new Error(problem);
}

function reconciled(rankd: RankdByHand): Promise<void> {
  return until(async () => (await rankd.run('history list --state pending unknown --json')).includes('"changes":[]'));
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error('It did not happen within 30 s.');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function afterItServed(rankd: RankdByHand): Promise<void> {
  await runCommand(rankd, 'audit verify');
  await runCommand(rankd, 'db check');
  await runCommand(rankd, 'restore --dry-run smoke.db');
  await runCommand(rankd, 'restore -y smoke.db');
  await step('rankd key show spare, which was made after the backup', () => rankd.run('key show spare', { code: 3 }));
}

function runCommand(rankd: RankdByHand, line: string, expected?: RegExp): Promise<void> {
  return step(`rankd ${line}`, () => rankd.run(line, { expected }));
}

/** Reports the result. A failure does not stop the remaining steps. */
async function step(name: string, work: () => Promise<unknown>): Promise<void> {
  const startedAt = performance.now();
  const failure = await work().then(
    () => undefined,
    (error: Error) => error.message,
  );
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stdout.write(`${failure === undefined ? 'ok  ' : 'FAIL'} ${seconds.padStart(5)} s  ${name}\n`);
  if (failure === undefined) return;
  failures += 1;
  process.stdout.write(`${failure.trimEnd().replaceAll(/^/gm, '              ')}\n`);
}

function newFolder(name: string): string {
  const path = join(folder, name);
  mkdirSync(path);
  return path;
}
