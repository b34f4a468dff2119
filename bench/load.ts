import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { onCore, program } from './processes.ts';

const run = promisify(execFile);

export interface LoadOptions {
  url: string;
  connections: number;
  /** For how long, or how many requests. */
  seconds?: number;
  amount?: number;
  /** Sent one after the other, again and again, by every connection. */
  requests: LoadRequest[];
  /** Where given, each `"MEMBER"` in a body becomes the next number after this one. */
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
  /** How many answers had which status. */
  statuses: Record<number, number>;
  failures: number;
  lastMember: number;
}

/** Loads a server from another core. Throws where any answer has another status than `status`: then the figures would be of something else. */
export async function load(options: LoadOptions, { status }: { status: number }): Promise<LoadReport> {
  const [node, args] = onCore('load', [program('load-process.ts'), JSON.stringify(options)]);
  const { stdout } = await run(node, args);
  const report = JSON.parse(stdout) as LoadReport;
  if (report.failures > 0 || Object.keys(report.statuses).join() !== String(status)) {
    throw new Error(
      `${options.url}: ${JSON.stringify(report.statuses)} and ${report.failures} failures where ${status} was to come`,
    );
  }
  return report;
}
