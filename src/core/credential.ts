import { RankdError } from '../base/errors.ts';
import type { Credential } from './model.ts';

/**
 * Why this credential can't change anything; `undefined` if it works or the platform does not report it. A missing
 * scope in the platform's list proves nothing by itself, because the list's format may change; together with a denied
 * write, it does.
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

/** The platform's words can be about this machine's address, the key, or its scopes. */
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
