import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { DaemonProcess } from '../support/daemon-process.ts';
import { CliHome } from '../support/run-cli.ts';

export interface RevocationOptions {
  daemons: number;
  /** The environment for each daemon and command, e.g. with the store's URL. */
  env: Record<string, string>;
  /** The number of requests that must begin after a revocation. Keys are revoked until this number is reached. */
  wanted: number;
  print?: (line: string) => void;
}

export interface RevocationReport {
  revocations: number;
  /** The number of requests that began before `rankd key revoke` returned. */
  before: number;
  /** The number of requests that began after `rankd key revoke` returned. */
  after: number;
  /** The number of later requests that succeeded; must be 0. */
  accepted: number;
  /** The number of later requests with a status other than 200 or 401. */
  others: number;
}

const connections = 64;
const place = 42;

/** Revokes keys while 64 connections verify them at the daemons. */
export async function runRevocations({ daemons, env, wanted, print }: RevocationOptions): Promise<RevocationReport> {
  await using opened = new AsyncDisposableStack();
  const urls: string[] = [];
  const limits = { RANKD_LIMITS_VERIFY: '0', RANKD_LIMITS_FAILED_AUTH: '0', RANKD_LOG_LEVEL: 'error' };
  const operator = opened.use(new CliHome());
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await operator.here([...args, '-q'], { env });
    if (code !== 0) throw new Error(`rankd ${args.join(' ')} ended with ${code}: ${stderr}`);
    return stdout.trim();
  };
  await run('workspace', 'show'); // creates the database before the daemons start
  for (let index = 0; index < daemons; index += 1) {
    // a daemon on SQLite needs the operator's data directory
    const home = env['RANKD_STORE_URL'] === undefined ? operator : opened.use(new CliHome());
    urls.push(opened.use(await DaemonProcess.start(home, { env: { ...env, ...limits } })).url);
  }
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  opened.defer(() => agent.destroy());
  const report = { revocations: 0, before: 0, after: 0, accepted: 0, others: 0 };
  while (report.after < wanted) {
    const name = `game-${report.revocations}`;
    const secret = await run('key', 'create', name);
    await run('whitelist', 'add', String(place), '--key', name);
    const answered: Array<{ begunAt: number; status: number | undefined }> = [];
    let isOver = false;
    const callers = Array.from({ length: connections }, async (_, index) => {
      while (!isOver) {
        const begunAt = performance.now();
        const status = await verify(`${urls[index % urls.length]}/v1/apikey`, { agent, secret });
        answered.push({ begunAt, status });
      }
    });
    while (answered.length < 2 * connections) await delay(5);
    await run('key', 'revoke', name, '-y');
    const revokedAt = performance.now();
    const isLater = ({ begunAt }: { begunAt: number }) => begunAt > revokedAt;
    const target = Math.min(wanted, 1_000);
    while (answered.filter(isLater).length < target) await delay(20);
    isOver = true;
    await Promise.all(callers);
    const later = answered.filter(isLater);
    report.revocations += 1;
    report.before += answered.length - later.length;
    report.after += later.length;
    report.accepted += later.filter(({ status }) => status === 200).length;
    report.others += later.filter(({ status }) => status !== 200 && status !== 401).length;
    if (!answered.some(({ status }) => status === 200)) throw new Error('the key was never accepted');
    print?.(`revocation ${report.revocations}: ${report.after} requests after, ${report.accepted} of them accepted`);
  }
  return report;
}

function verify(url: string, { agent, secret }: { agent: Agent; secret: string }): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', agent, headers: { authorization: `Bearer ${secret}` } }, (response) => {
      text(response).then(() => resolve(response.statusCode), reject);
    });
    sent.on('error', reject).end(JSON.stringify({ placeid: place }));
  });
}
