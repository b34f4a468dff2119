import { binary } from '../../test/support/run-cli.ts';
import { openRankd, type Rankd } from '../daemon.ts';
import { fill, small } from '../fill.ts';
import type { Finding } from '../findings.ts';
import type { FullDatabase } from '../full-database.ts';
import { openLoad } from '../load.ts';
import type { ServerProcess } from '../processes.ts';
import { interleaved, ratio } from '../rounds.ts';
import { verification } from '../verification.ts';
import { firstStarts, runMs } from './commands.ts';
import { slice } from './verify.ts';

/** Measures verifications and list commands on a full database against a nearly empty one. */
export async function scale({ rounds, database }: { rounds: number; database: FullDatabase }): Promise<Finding[]> {
  await using load = openLoad();
  const { full, secrets } = await database.withAllKeys();
  await using empty = await openRankd();
  const fullRequests = secrets.map((secret) => verification(secret));
  const emptyRequests = fill(empty, small).map((secret) => verification(secret));
  await using fullServer = await full.start();
  await using emptyServer = await empty.start();
  const run = ({ url }: ServerProcess, requests: typeof fullRequests) =>
    load.send({ url, ...slice, requests }, { status: 200 });
  const verified = await interleaved(
    { ours: () => run(fullServer, fullRequests), baseline: () => run(emptyServer, emptyRequests) },
    rounds,
  );
  const listed = (line: string[]) =>
    interleaved({ ours: () => listMs(full, line), baseline: () => listMs(empty, line) }, rounds, firstStarts);
  const history = await listed(['history', 'list']);
  const keys = await listed(['key', 'list', '--limit', '10']);
  const against = 'the same with 10';
  const amounts = 'with 1 000 000 keys and places, 5 000 000 changes';
  return [
    {
      what: `POST /v1/apikey ${amounts}`,
      against,
      figure: 'req/s',
      unit: '×',
      goal: { atLeast: 0.9 },
      ...ratio(verified, (r) => r.requestsPerSecond),
    },
    {
      what: `history list ${amounts}`,
      against,
      figure: 'time',
      unit: '×',
      goal: { atMost: 1.5 },
      ...ratio(history, (ms) => ms),
    },
    {
      what: `key list ${amounts}`,
      against,
      figure: 'time',
      unit: '×',
      goal: { atMost: 1.5 },
      ...ratio(keys, (ms) => ms),
    },
  ];
}

async function listMs({ home }: Rankd, line: string[]): Promise<number> {
  return runMs(home, [binary, ...line]);
}
