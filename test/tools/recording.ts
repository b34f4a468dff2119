import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname } from 'node:path';
import { promisify } from 'node:util';
import { DaemonProcess } from '../support/daemon-process.ts';
import { startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { binary, CliHome } from '../support/run-cli.ts';
import { configFor } from './fake-config.ts';
import { TerminalPicture } from './terminal-picture.ts';

/**
 * `npm run recording`: runs commands of the built rankd on a terminal, with a daemon and a fake Roblox, and records the
 * screen in docs/recording.svg. The result is reproducible.
 */
const columns = 100;
const scene = [
  'rankd key create my-game --max-rank Officer --out my-game.key',
  'rankd whitelist add 920587237',
  '# Now a game asks: Newcomer passed the quiz and is to be Officer.',
  'rankd rank promote Patrol_Pat --reason "two weeks on duty"',
  'rankd history list',
  'rankd history undo --key my-game --since 1h -y',
  'rankd rank show Newcomer',
];

const beginsAt = Date.UTC(2026, 4, 1, 18, 0);
using home = new CliHome();
const roblox = await startFakeOpenCloud({ groupId: 4199740 });
writeFileSync(home.path('rankd.yaml'), configFor(roblox));
await using daemon = await DaemonProcess.start(home, { env: recorded(0) });
const picture = new TerminalPicture({ columns, rows: 26 });
for (const [index, command] of scene.entries()) {
  picture.type(command);
  picture.print(command.startsWith('#') ? await askAsAGame() : await run(command, index));
}
writeFileSync(new URL('../../docs/recording.svg', import.meta.url), picture.svg(`A terminal: ${scene.join('; ')}`));
await daemon.stop();
await roblox.close();

async function run(command: string, index: number): Promise<string> {
  const script = `stty cols ${columns} rows 40; ${command}`;
  const { stdout } = await promisify(execFile)('script', ['-qec', script, '/dev/null'], {
    cwd: home.cwd,
    env: {
      ...recorded(index + 1),
      ...{ PATH: [dirname(binary), dirname(process.execPath), process.env['PATH']].join(delimiter) },
      ...{ HOME: home.folder, RANKD_DATA_DIR: home.dataDir, SHELL: '/bin/sh', TERM: 'xterm-256color' },
    },
  });
  return stdout.replaceAll(home.dataDir, '~/.local/share/rankd');
}

async function askAsAGame(): Promise<string> {
  const answer = await daemon.post('/v1/ranker?placeid=920587237', {
    key: readFileSync(home.path('my-game.key'), 'utf8').trim(),
    body: { rankerName: 'QuizGame', rankerId: 0, rankeeName: 'Newcomer', rankeeId: 1001, newRankId: 20 },
  });
  return `${(answer.json as { message: string }).message}\n`;
}

function recorded(step: number): Record<string, string> {
  return {
    NODE_OPTIONS: `--import ${new URL('recording-preload.ts', import.meta.url)}`,
    RANKD_PLATFORM_API_KEY: roblox.apiKey,
    RECORDING_SEED: String(step),
    RECORDING_NOW: String(beginsAt + step * 60_000),
    TZ: 'UTC',
  };
}
