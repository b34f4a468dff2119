import { crypto } from '../../base/node-modules.ts';
import type { LoginLink, Ports } from '../../ports/index.ts';
import { auditDashboard } from './operator-events.ts';

const linkLifeMs = 5 * 60_000;

/**
 * Creates a login link that works once, within five minutes, on the dashboard of any daemon that uses this store. The
 * store receives only a hash of the link's secret.
 */
export async function makeLoginLink(
  ports: Pick<Ports, 'store' | 'clock'>,
  { by, isViewOnly, lifeMs }: LoginLink,
): Promise<{ secret: string; expiresAt: number }> {
  await auditDashboard(ports, 'link', { by, ...(isViewOnly && { viewOnly: true }) });
  const secret = crypto().randomBytes(16).toString('base64url');
  const now = ports.clock.now();
  const expiresAt = now + linkLifeMs;
  const link = { hash: hashOf(secret), by: by.replace(/^cli:/, 'web:'), isViewOnly, lifeMs, expiresAt };
  await ports.store.storeLoginLink(link, now);
  return { secret, expiresAt };
}

/** Uses up a login link. Returns `undefined` if it was already used, has expired or never existed. */
export function takeLoginLink(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  secret: string,
): Promise<LoginLink | undefined> {
  return store.takeLoginLink(hashOf(secret), clock.now());
}

function hashOf(secret: string): string {
  return crypto().hash('sha256', secret);
}
