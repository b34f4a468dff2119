import { isoTime } from '../../base/time.ts';
import type { Config } from '../../config/config.ts';

/** A daemon that has begun to listen. `simulated` exists only if it is true, so that no script overlooks it. */
export function servingDocument(
  { url, metricsUrl, dataDir }: { url: string; metricsUrl: string | undefined; dataDir: string },
  { kind }: Pick<Config['platform'], 'kind'>,
) {
  const listening = { url, metricsUrl: metricsUrl ?? null, platform: kind, dataDir };
  return kind === 'simulated' ? { ...listening, simulated: true } : listening;
}

/** `misfits`: settings that no longer fit the group. */
export function healthDocument(url: string, misfits: readonly string[]) {
  return { healthy: true, url, ...(misfits.length > 0 && { misfits }) };
}

/** The changes of a reload. `warnings` are the daemon's and those of the requesting command. */
export function reloadDocument<Applied extends { state: 'applied'; warnings: string[] }>(
  { state: _, ...outcome }: Applied,
  warnings: string[],
) {
  return { ...outcome, warnings };
}

/** The outcome of a reload at each of several nodes. */
export function nodeReloadsDocument(
  reloads: ReadonlyArray<{
    name: string;
    outcome: { state: string; withExcerpts?: string; hint?: string | undefined } | undefined;
  }>,
) {
  return {
    nodes: reloads.map(({ name, outcome }) => {
      const { state, withExcerpts: _, hint, ...rest } = outcome ?? { state: 'no_answer' };
      return { name, state, ...rest, ...(hint !== undefined && { try: hint }) };
    }),
  };
}

/** A session of the page. Times are epoch milliseconds. */
interface Session {
  by: string;
  loggedInAt: number;
  expiresAt: number;
  mayChangeUntil: number;
  isViewOnly: boolean;
}

export function sessionDocument({ by, loggedInAt, expiresAt, mayChangeUntil, isViewOnly }: Session, typedAs: string) {
  return {
    operator: by.replace(/^web:/, ''),
    loggedInAt: isoTime(loggedInAt),
    expiresAt: isoTime(expiresAt),
    mayChangeUntil: isoTime(mayChangeUntil),
    viewOnly: isViewOnly,
    typedAs,
  };
}

/** A link that logs in once. */
export function linkDocument({ url, expiresAt }: { url: string; expiresAt: number }) {
  return { url, expiresAt: isoTime(expiresAt) };
}
