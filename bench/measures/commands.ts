import { spawnSync } from 'node:child_process';
import { binary, type CliHome } from '../../test/support/run-cli.ts';
import { openRankd } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import { onCore } from '../processes.ts';
import { interleaved, ratio } from '../rounds.ts';

const against = 'node -e 0';
/** The number of uncounted warm-up runs. They fill Node.js's compile cache and the operating system's file cache. */
export const firstStarts = 2;

/** Measures the wall time of commands, and of `serve` up to its first response, against that of `node -e 0`. */
export async function commands({ rounds }: { rounds: number }): Promise<Finding[]> {
  await using rankd = await openRankd();
  let made = 0;
  const nextName = () => {
    made += 1;
    return `key-${made}`;
  };
  const lines: Array<{ line: () => string[]; what: string; atMost: number }> = [
    { what: 'rankd --version', line: () => ['--version'], atMost: 1.4 },
    { what: 'rankd key list', line: () => ['key', 'list'], atMost: 3 },
    { what: 'rankd key create', line: () => ['key', 'create', nextName()], atMost: 6 },
  ];
  const findings: Finding[] = [];
  for (const { what, line, atMost } of lines) {
    const ours = async () => runMs(rankd.home, [binary, ...line()]);
    const pairs = await interleaved({ ours, baseline: emptyRun(rankd.home) }, rounds, firstStarts);
    findings.push({ what, against, figure: 'time', unit: '×', goal: { atMost }, ...ratio(pairs, (ms) => ms) });
  }
  const serve = { ours: () => firstAnswerMs(rankd), baseline: emptyRun(rankd.home) };
  const starts = await interleaved(serve, rounds, firstStarts);
  const what = 'rankd serve, to its first answer';
  findings.push({ what, against, figure: 'time', unit: '×', goal: { atMost: 9 }, ...ratio(starts, (ms) => ms) });
  return findings;
}

export function runMs({ folder, dataDir, cwd }: CliHome, args: string[]): number {
  const [program, programArgs] = onCore('server', args);
  const env = { PATH: process.env['PATH'], HOME: folder, RANKD_DATA_DIR: dataDir };
  const startedAt = performance.now();
  const { status, stderr } = spawnSync(program, programArgs, { cwd, env, encoding: 'utf8' });
  const ms = performance.now() - startedAt;
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return ms;
}

function emptyRun(home: CliHome): () => Promise<number> {
  return async () => runMs(home, ['-e', '0']);
}

async function firstAnswerMs(rankd: Awaited<ReturnType<typeof openRankd>>): Promise<number> {
  const startedAt = performance.now();
  await using server = await rankd.start();
  const { status } = await fetch(`${server.url}/healthz`);
  const ms = performance.now() - startedAt;
  if (status !== 200) throw new Error(`/healthz responded with ${status}`);
  return ms;
}
