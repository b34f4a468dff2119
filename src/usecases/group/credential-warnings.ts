import type { CallContext, Ports } from '../../ports/index.ts';

const dayMs = 86_400_000;
const expiryNoticeDays = 14;

/**
 * Asks the platform about the credential and says what the operator should see to before it stops working. Also reads
 * the roles with it: a group can be quiet for long, and Roblox expires keys by itself that were not used for 60 days.
 * Source: Open Cloud documentation, API keys.
 */
export async function credentialWarnings(
  { platform, clock }: Pick<Ports, 'platform' | 'clock'>,
  call: CallContext,
): Promise<string[]> {
  const { expiresAt, canWrite } = await platform.checkCredential(call);
  await platform.roles(call);
  const now = clock.now();
  const warnings: string[] = [];
  if (canWrite === false) warnings.push('the platform key lacks group:write for this group: no rank can be changed');
  if (expiresAt !== undefined && expiresAt - now < expiryNoticeDays * dayMs) {
    const days = Math.floor((expiresAt - now) / dayMs);
    const on = new Date(expiresAt).toISOString().slice(0, 10);
    warnings.push(
      `the platform key expires in ${days} days, on ${on}: renew it before, and rankd reload takes up a new one`,
    );
  }
  return warnings;
}
