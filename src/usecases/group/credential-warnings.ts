import { isoDay } from '../../base/time.ts';
import type { CallContext, Ports } from '../../ports/index.ts';

const dayMs = 86_400_000;
const expiryNoticeDays = 14;

/**
 * Asks the platform about the credential. Returns advice to the operator before it stops working, one sentence each.
 * Also reads the roles with it, because Roblox expires keys that were unused for 60 days, and a group can be quiet for
 * that long. Source: Open Cloud documentation, API keys.
 */
export async function credentialWarnings(
  { platform, clock }: Pick<Ports, 'platform' | 'clock'>,
  call: CallContext,
): Promise<string[]> {
  const { state, expiresAt, canWrite } = await platform.checkCredential(call);
  await platform.roles(call);
  const now = clock.now();
  const warnings: string[] = [];
  if (state === 'untold')
    warnings.push(
      'Roblox does not tell how the Roblox key is, nor which account it acts as: changes are made, and Roblox decides',
    );
  if (canWrite === false)
    warnings.push(
      'Roblox does not list group:write for this group among the scopes of the Roblox key: if it denies changes, give the key that scope',
    );
  if (expiresAt !== undefined && expiresAt - now < expiryNoticeDays * dayMs) {
    const days = Math.floor((expiresAt - now) / dayMs);
    warnings.push(
      `the Roblox key expires in ${days} days, on ${isoDay(expiresAt)}: renew it before, and rankd reload takes up a new one`,
    );
  }
  return warnings;
}
