import { RankdError } from '../base/errors.ts';
import type { Credential } from './model.ts';

/**
 * Why nothing can be changed with this credential; `undefined` if it works or the platform does not say. That the platform does not
 * list the scope is no proof, as it may list it in another shape one day; it is one if a write was denied, too.
 */
export function refusalOfCredential({ state, canWrite }: Credential, isWriteDenied = false): RankdError | undefined {
  if (state !== 'valid' && state !== 'untold') return credentialError(`is ${state}`);
  return canWrite === false && isWriteDenied
    ? credentialError('lacks the scope group:write for this group')
    : undefined;
}

function credentialError(what: string): RankdError {
  return new RankdError('platform_credential', `The Roblox key ${what}.`, {
    hint: 'enable or renew the Roblox key, with group:write for this group; put a new key into the file that platform.api_key_file names, then run `rankd reload`',
  });
}
