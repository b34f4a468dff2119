import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { askDashboardLink } from '../../src/control/ask.ts';
import { place, type Rankd } from '../daemon.ts';
import type { Finding } from '../findings.ts';
import type { FullDatabase } from '../full-database.ts';
import { spreadOf } from '../rounds.ts';

/** Typical searches for common, rare and missing values, and for combinations of them. */
const searches = {
  'the newest changes': '',
  'a member by id': 'user=2000',
  'a member by the beginning of the name': 'user=member1234',
  'many members by the beginning of the name': 'user=mem',
  'nobody by the beginning of the name': 'user=zzz',
  'a ranker': 'ranker=8',
  'a key': 'key=key_fill7',
  'a place': `place=${place}`,
  'what was refused': 'state=refused',
  'what failed': 'state=failed',
  'an hour ten days ago': 'since=240h&until=239h',
  'a place, refused, an hour ten days ago': `place=${place}&state=refused&since=240h&until=239h`,
  'a key that failed nowhere': 'key=key_fill7&state=failed',
  'an operator': 'by=cli',
};

const others = { chart: 'chart', keys: 'keys', head: 'status' };

/**
 * Measures the page's searches, and the views in `others`, over five million changes. Reports the slowest of each
 * round.
 */
export async function search({ rounds, database }: { rounds: number; database: FullDatabase }): Promise<Finding[]> {
  const rankd = await database.filled();
  await using _server = await rankd.start({ RANKD_DASHBOARD_PORT: '0' });
  const paths = { ...searches, ...others };
  const slowest: number[] = [];
  for (let round = -1; round < rounds; round += 1) {
    const visitor = await logIn(rankd);
    let slow = { ms: 0, what: '' };
    for (const [what, query] of Object.entries(paths)) {
      const ms = await visitor.msFor(what in searches ? `/api/changes?${query}` : `/api/${query}`);
      if (ms > slow.ms) slow = { ms, what };
    }
    process.stderr.write(`slowest: ${slow.what}, ${slow.ms.toFixed(1)} ms\n`);
    if (round >= 0) slowest.push(slow.ms); // the first round reads the database from disk
  }
  return [
    {
      what: `the slowest of ${Object.keys(paths).length} views and searches of the page over 5 000 000 changes`,
      ...{ against: '50 ms', figure: 'time', unit: 'ms', goal: { atMost: 50 }, ...spreadOf(slowest) },
    },
  ];
}

async function logIn({ home }: Rankd): Promise<{ msFor(path: string): Promise<number> }> {
  const link = await askDashboardLink({ dataDir: home.dataDir, by: 'cli:bench@host', isViewOnly: false, hours: 12 });
  if (link === undefined || link.state !== 'made') throw new Error('the daemon made no link');
  const { origin, hash } = new URL(link.url);
  const send = async (path: string, method: string, headers: Record<string, string>, body?: string) => {
    const request = http.request(origin + path, { method, headers: { 'sec-fetch-site': 'same-origin', ...headers } });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const received = await text(response);
    if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode} ${received}`);
    return { response, document: JSON.parse(received) };
  };
  const body = JSON.stringify({ link: hash.slice(1) });
  const { response, document } = await send('/api/login', 'POST', { 'content-type': 'application/json' }, body);
  const cookie = String(response.headers['set-cookie']).split(';', 1)[0] ?? '';
  return {
    async msFor(path) {
      const before = performance.now();
      await send(path, 'GET', { cookie, 'x-rankd-token': document.session.token });
      return performance.now() - before;
    },
  };
}
