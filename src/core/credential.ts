import { RankdError } from '../base/errors.ts';
import type { Credential } from './model.ts';

/**
 * Returns the refusal if the credential can't change ranks, or `undefined` if it can or if the platform does not report
 * whether it can. A scope that is missing from the platform's list counts only once a write was denied, because the
 * list's format may change.
 */
export function refusalOfCredential(
  { state, refusal, canWrite }: Credential,
  isWriteDenied = false,
): RankdError | undefined {
  if (state === 'invalid' && refusal !== undefined) return refusedKey(refusal);
  if (state !== 'valid' && state !== 'unreported') return credentialError(`is ${state}`);
  return canWrite === false && isWriteDenied
    ? credentialError('lacks the group:write scope for this group')
    : undefined;
}

/**
 * Returns the error for a rejected Roblox key. `refusal`: the platform's message about the key, its scopes or this
 * machine's IP address.
 */
export function refusedKey(refusal: string): RankdError {
  return new RankdError('platform_credential', `Roblox does not accept the Roblox key (${refusal}).`, {
    hint: 'check on the Creator Dashboard that the key is active, allows this address and has group:read and group:write for the group',
  });
}

function credentialError(what: string): RankdError {
  return new RankdError('platform_credential', `The Roblox key ${what}.`, {
    hint: 'enable or renew the Roblox key, with group:write for this group; put a new key into the file that platform.api_key_file names, then run `rankd reload`',
  });
}
