import { allow, invalidKey } from '../core/access.ts';
import { hashKey, keyMode } from '../core/api-key.ts';
import type { Scope } from '../core/model.ts';
import { RankdError } from '../errors.ts';
import type { Ports, Presented } from '../ports.ts';

const bearer = /^bearer +(\S+) *$/i;

/** The key record behind an `Authorization` header, where it may do `scope` from the place. Throws the refusal. */
export async function authorize(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { authorization, placeId, scope }: { authorization: string | undefined; placeId: number; scope: Scope },
): Promise<Presented> {
  const secret = bearer.exec(authorization ?? '')?.[1];
  if (secret === undefined) {
    throw new RankdError('missing_authorization', 'Send the API key in the header "Authorization: Bearer <key>".');
  }
  const createHint = 'rankd key create NAME';
  if (keyMode(secret) === undefined) throw invalidKey('malformed: not an API key, or mistyped', createHint);
  const presented = await store.findPresented({ hash: hashKey(secret), placeId });
  if (presented === undefined) throw invalidKey('no such key', createHint);
  allow(presented, { scope, placeId, now: clock.now() });
  return presented;
}
