import { createInterface } from 'node:readline';
import autocannon from 'autocannon';
import type { LoadOptions, LoadReport } from './load.ts';

/**
 * Reads `LoadOptions` from standard input, one JSON document per line; sends each load, and prints its report as a line
 * of JSON. `load.ts` runs this script on a different core than the server's.
 */
for await (const line of createInterface({ input: process.stdin })) {
  const report = await send(JSON.parse(line) as LoadOptions);
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

async function send({ url, connections, amount, requests, firstMember }: LoadOptions): Promise<LoadReport> {
  const latencies: number[] = [];
  const statuses: Record<number, number> = {};
  let nextMember = firstMember ?? 0;
  let startedAt = 0;
  let endedAt = 0;
  const { errors, timeouts } = await autocannon({
    url,
    connections,
    amount,
    sampleInt: 10,
    setupClient: (client) => {
      startedAt ||= performance.now();
      client.on('response', (status, _bytes, ms) => {
        endedAt = performance.now();
        latencies.push(ms);
        statuses[status] = (statuses[status] ?? 0) + 1;
      });
    },
    requests: requests.map(({ path, headers, body }) => ({
      method: 'POST',
      path,
      headers,
      body,
      // each rank request is for a different member
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
  return {
    requestsPerSecond: (1_000 * latencies.length) / (endedAt - startedAt),
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    statuses,
    failures: errors + timeouts,
    lastMember: nextMember,
  };
}
