import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';
import { startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { pagesToType } from '../support/readme-commands.ts';
import { freePort, Shell } from './shell.ts';

/**
 * `npm run walk`: runs the commands from README and docs/go-live.md in a shell, and measures the time from a fresh
 * clone with an empty npm cache to the first rank change, on the simulated group and on a fake Open Cloud. Exits with 1
 * if a rank change fails or takes longer than bench/README.md allows.
 */
const { latency } = new Command('npm run walk --')
  .description('Runs the commands of README and docs/go-live.md, and measures the time to the first rank change.')
  .option('--latency <ms>', 'delay of every response of the fake Open Cloud', wholeNumber(0, 600_000), 200)
  .parse()
  .opts<{ latency: number }>();
const limitSeconds = { simulated: 60, real: 300 };

const folder = mkdtempSync(join(tmpdir(), 'rankd-walk-'));
const clone = join(folder, 'rankd');
try {
  const { install, simulated } = await onSimulatedGroup();
  const real = install + (await onRealGroup());
  report(simulated, 'from nothing to the first rank change on the simulated group');
  report(real, "from nothing to the first rank change on a real group: the machine's share");
  if (simulated > limitSeconds.simulated || real > limitSeconds.real) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function onSimulatedGroup(): Promise<{ install: number; simulated: number }> {
  mkdirSync(clone);
  const shell = new Shell({ folder: clone, port: await freePort(), env: freshEnv('simulated') });
  const cloned = await shell.run(`git clone --quiet '${fileURLToPath(new URL('../..', import.meta.url))}' .`);
  report(cloned, 'git clone, from this machine');
  const [installAndServe = ''] = pagesToType.install();
  const [install = '', serve = ''] = installAndServe.split(' && ');
  const installed = await timed(shell, install);
  const walked = await walk(shell, [serve, ...pagesToType.trial()]);
  return { install: cloned + installed, simulated: cloned + installed + walked };
}

async function onRealGroup(): Promise<number> {
  const commands = pagesToType.goLive();
  const [, groupId] = /--group (\d+)/.exec(commands.join('\n')) ?? [];
  const roblox = await startFakeOpenCloud({ groupId: Number(groupId), latencyMs: latency });
  try {
    writeFileSync(join(clone, 'roblox.key'), roblox.apiKey, { mode: 0o600 });
    const addresses = {
      RANKD_PLATFORM_BASE_URL: roblox.baseUrl,
      RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl,
    };
    const shell = new Shell({ folder: clone, port: await freePort(), env: { ...freshEnv('real'), ...addresses } });
    return await walk(shell, commands);
  } finally {
    await roblox.close();
  }
}

/** Runs commands until the first rank change. Resolves with their total duration in seconds. */
async function walk(shell: Shell, commands: string[]): Promise<number> {
  let seconds = 0;
  try {
    for (const command of commands) {
      seconds += await timed(shell, command);
      if (shell.lastOutput.includes('"success":true')) return seconds;
    }
    throw new Error(`no rank was changed: ${shell.lastOutput}`);
  } finally {
    await shell.stop();
  }
}

async function timed(shell: Shell, command: string): Promise<number> {
  const isServing = command.endsWith('rankd serve');
  const seconds = isServing ? await shell.serve(command) : await shell.run(command);
  report(
    seconds,
    `${command.length > 90 ? `${command.slice(0, 90)}…` : command}${isServing ? ', until it listens' : ''}`,
  );
  return seconds;
}

/** Returns the environment of a machine without an npm cache, settings or data. */
function freshEnv(name: string): Record<string, string> {
  return {
    npm_config_cache: join(folder, 'npm-cache'),
    XDG_CONFIG_HOME: join(folder, 'settings'),
    RANKD_DATA_DIR: join(folder, `data-${name}`),
  };
}

function report(seconds: number, what: string): void {
  process.stdout.write(`${seconds.toFixed(1).padStart(6)} s  ${what}\n`);
}
