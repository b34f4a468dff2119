import type { CallContext, Ports } from '../ports.ts';

const dayMs = 86_400_000;
const expiryNoticeDays = 14;
/** Roblox expires keys by itself that were not used for 60 days. Source: Open Cloud documentation, API keys. */
const unusedDays = 60;
const unusedNoticeDays = 45;

/**
 * Asks the platform about the credential and says what the operator should see to before it stops working. Also reads
 * the roles with it, so that a group that is quiet for long does not let it expire unused.
 */
export async function credentialWarnings(
  { platform, store, clock }: Pick<Ports, 'platform' | 'store' | 'clock'>,
  call: CallContext,
): Promise<string[]> {
  const { expiresAt, canWrite } = await platform.checkCredential(call);
  await platform.roles(call);
  const [newest] = await store.listChanges({ states: ['applied'], limit: 1 });
  const now = clock.now();
  const quietDays = newest === undefined ? 0 : Math.floor((now - newest.requestedAt) / dayMs);
  const warnings: string[] = [];
  if (canWrite === false) warnings.push('the platform key lacks group:write for this group: no rank can be changed');
  if (expiresAt !== undefined && expiresAt - now < expiryNoticeDays * dayMs) {
    const days = Math.floor((expiresAt - now) / dayMs);
    const on = new Date(expiresAt).toISOString().slice(0, 10);
    warnings.push(
      `the platform key expires in ${days} days, on ${on}: renew it before, and rankd reload takes up a new one`,
    );
  }
  if (quietDays >= unusedNoticeDays) {
    warnings.push(
      `no rank was changed for ${quietDays} days; Roblox expires keys that are not used for ${unusedDays} days`,
    );
  }
  return warnings;
}
