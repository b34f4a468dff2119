import { isoTime } from '../../base/time.ts';
import type { Config } from '../../config/config.ts';

export function servingDocument(
  { url, metricsUrl, dataDir }: { url: string; metricsUrl: string | undefined; dataDir: string },
  { kind }: Pick<Config['platform'], 'kind'>,
) {
  const listening = { url, metricsUrl: metricsUrl ?? null, platform: kind, dataDir };
  return kind === 'simulated' ? { ...listening, simulated: true } : listening;
}

export function healthDocument(url: string, misfits: readonly string[]) {
  return { healthy: true, url, ...(misfits.length > 0 && { misfits }) };
}

export function reloadDocument<Applied extends { state: 'applied'; warnings: string[] }>(
  { state: _, ...outcome }: Applied,
  warnings: string[],
) {
  return { ...outcome, warnings };
}

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

/** A dashboard session. Times are epoch milliseconds. */
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

export function linkDocument({ url, expiresAt }: { url: string; expiresAt: number }) {
  return { url, expiresAt: isoTime(expiresAt) };
}
