import { once } from 'node:events';
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { DaemonStatus } from './daemon-status.ts';
import { socketPath } from './socket-path.ts';

/** What the daemon of a data directory says of itself; `undefined` where it does not answer in time. */
export async function askStatus(dataDir: string, timeoutMs: number): Promise<DaemonStatus | undefined> {
  const answer = await get({ socketPath: socketPath(dataDir), path: '/status' }, timeoutMs).catch(() => undefined);
  return answer?.status === 200 ? (JSON.parse(answer.body) as DaemonStatus) : undefined;
}

/** The answer to a GET. Rejects with Node's error where there is none in time. */
export async function get(
  where: RequestOptions,
  timeoutMs: number,
): Promise<{ status: number | undefined; body: string }> {
  const signal = AbortSignal.timeout(timeoutMs);
  const sent = request({ ...where, agent: false, signal }).end();
  const [response]: [IncomingMessage] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}
