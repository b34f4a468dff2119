import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http';
import { text } from 'node:stream/consumers';
import { http } from '../base/node-modules.ts';
import type { DaemonStatus } from '../usecases/upkeep/status-document.ts';
import {
  changeHeader,
  controlPath,
  type LateReadOutcome,
  type LinkOutcome,
  type LinkRequest,
  operatorHeader,
  type ReloadOutcome,
  sessionHeader,
} from './control.ts';

/** A healthy daemon responds much faster. */
const answerTimeoutMs = 3_000;

export async function askStatus(dataDir: string): Promise<DaemonStatus | undefined> {
  return ask<DaemonStatus>({ dataDir, path: '/status' }, answerTimeoutMs);
}

/** Requests the secret with which the daemon proves its identity. */
export async function askIdentity(dataDir: string): Promise<string | undefined> {
  const what = { dataDir, path: '/identity' };
  return (await ask<{ identity: string }>(what, answerTimeoutMs))?.identity;
}

export function askReload(
  { dataDir, by, relearns }: { dataDir: string; by: string; relearns: boolean },
  timeoutMs: number,
): Promise<ReloadOutcome | undefined> {
  const headers = { [operatorHeader]: encodeURIComponent(by) };
  const path = relearns ? '/relearn' : '/reload';
  return ask<ReloadOutcome>({ dataDir, path, method: 'POST', headers }, timeoutMs);
}

/** Asks the daemon to verify a change with a late read. Resolves with false if no daemon accepts the task. */
export async function askLateRead(dataDir: string, changeId: string): Promise<boolean> {
  const headers = { [changeHeader]: changeId };
  const what = { dataDir, path: '/late-read', method: 'POST', headers };
  return (await ask<LateReadOutcome>(what, answerTimeoutMs))?.isTaken ?? false;
}

export function askDashboardLink({ isViewOnly, hours, ...asking }: LinkRequest & { dataDir: string }) {
  const session = { [sessionHeader]: `${hours}${isViewOnly ? ' view' : ''}` };
  return askDashboard<LinkOutcome>(asking, '/dashboard', session);
}

export function askDashboardLogout(asking: { dataDir: string; by: string }) {
  return askDashboard<{ sessions: number }>(asking, '/dashboard/logout');
}

function askDashboard<Answer>(
  { dataDir, by }: { dataDir: string; by: string },
  path: string,
  more: Record<string, string> = {},
): Promise<Answer | undefined> {
  const headers = { [operatorHeader]: encodeURIComponent(by), ...more };
  return ask<Answer>({ dataDir, path, method: 'POST', headers }, dashboardTimeoutMs);
}

/** Longer than other timeouts, because the first dashboard request loads the dashboard's code. */
const dashboardTimeoutMs = 10_000;

interface Asking extends RequestOptions {
  dataDir: string;
}

async function ask<Answer>(what: Asking, timeoutMs: number): Promise<Answer | undefined> {
  const answer = await exchangeWithDaemon(what, timeoutMs);
  return answer?.status === 200 ? (JSON.parse(answer.body) as Answer) : undefined;
}

/** Resolves with `undefined` if there is no daemon, or if it does not respond in time. */
async function exchangeWithDaemon({ dataDir, ...what }: Asking, timeoutMs: number) {
  const socketPath = controlPath(dataDir);
  return socketPath === undefined ? undefined : exchange({ ...what, socketPath }, timeoutMs).catch(() => undefined);
}

/** Sends a request without a body. Rejects with a Node.js error if there is no response in time. */
export async function exchange(
  what: RequestOptions,
  timeoutMs: number,
): Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: string }> {
  const signal = AbortSignal.timeout(timeoutMs);
  const sent = http()
    .request({ ...what, agent: false, signal })
    .end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}
