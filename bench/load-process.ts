import autocannon from 'autocannon';
import type { LoadOptions, LoadReport } from './load.ts';

/** Sends the load that its one argument describes, and prints what came of it: run by `load.ts`, on a core of its own. */
const options = JSON.parse(process.argv[2] ?? '') as LoadOptions;
const { url, connections, seconds = 0, amount, requests, firstMember } = options;
const latencies: number[] = [];
const statuses: Record<number, number> = {};
let nextMember = firstMember ?? 0;

const { errors, timeouts, duration } = await autocannon({
  url,
  connections,
  setupClient: (client) => {
    client.on('response', (status, _bytes, ms) => {
      latencies.push(ms);
      statuses[status] = (statuses[status] ?? 0) + 1;
    });
  },
  ...(amount === undefined ? { duration: seconds } : { amount }),
  requests: requests.map(({ path, headers, body }) => ({
    method: 'POST',
    path,
    headers,
    body,
    // Every rank request is about another member.
    ...(firstMember !== undefined && {
      setupRequest: (request) => {
        nextMember += 1;
        return { ...request, body: body.replace('"MEMBER"', String(nextMember)) };
      },
    }),
  })),
});
latencies.sort((a, b) => a - b);
const percentile = (share: number) => latencies[Math.floor((latencies.length - 1) * share)] ?? Number.NaN;
const report: LoadReport = {
  requestsPerSecond: latencies.length / duration,
  p50Ms: percentile(0.5),
  p99Ms: percentile(0.99),
  statuses,
  failures: errors + timeouts,
  lastMember: nextMember,
};
process.stdout.write(JSON.stringify(report));
