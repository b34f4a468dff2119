import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onCore, program } from './processes.ts';

export interface LoadOptions {
  url: string;
  connections: number;
  /** The total number of requests over all connections. */
  amount: number;
  /** Each connection cycles through these requests. */
  requests: LoadRequest[];
  /** If set, `"MEMBER"` in the body of each request is replaced by the next user id after this one. */
  firstMember?: number;
}

export interface LoadRequest {
  path: string;
  headers: Record<string, string>;
  body: string;
}

export interface LoadReport {
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  statuses: Record<number, number>;
  failures: number;
  lastMember: number;
}

/**
 * Sends load from a different core than the server's. One process sends it both to rankd and to the baseline, because a
 * new process would be slow at first.
 */
export interface Load extends AsyncDisposable {
  /** Throws if a request fails or has a status other than `expected`, because the figures would then be meaningless. */
  send(options: LoadOptions, expected: { status: number }): Promise<LoadReport>;
}

export function openLoad(): Load {
  const [command, args] = onCore('load', [program('load-process.ts')]);
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const reports = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async send(options, { status }) {
      child.stdin.write(`${JSON.stringify(options)}\n`);
      const { value, done } = await reports.next();
      if (done) throw new Error(`${options.url}: the load ended before its report`);
      const report = JSON.parse(value) as LoadReport;
      if (report.failures > 0 || Object.keys(report.statuses).join() !== String(status)) {
        throw new Error(
          `${options.url}: ${JSON.stringify(report.statuses)} and ${report.failures} failures instead of ${status}`,
        );
      }
      return report;
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await exited;
    },
  };
}
