import { invalidKey, wrongMode } from '../core/access.ts';
import { hashKey, keyMode } from '../core/api-key.ts';
import { RankdError } from '../errors.ts';
import type { Presented, Store } from '../ports.ts';

const bearer = /^bearer +(\S+) *$/i;

/** The key record behind an `Authorization` header; whether it may do anything is not decided here. */
export async function identify(
  { store }: { store: Pick<Store, 'findPresented'> },
  { authorization, placeId }: { authorization: string | undefined; placeId: number },
): Promise<Presented> {
  const secret = bearer.exec(authorization ?? '')?.[1];
  if (secret === undefined) {
    throw RankdError.withoutStack(
      'missing_authorization',
      'Send the API key in the header "Authorization: Bearer <key>".',
    );
  }
  const createHint = 'rankd key create NAME';
  const mode = keyMode(secret);
  if (mode === undefined) throw invalidKey('malformed: not an API key, or mistyped', createHint);
  const presented = await store.findPresented({ hash: hashKey(secret), placeId });
  if (presented === undefined) throw invalidKey('no such key', createHint);
  if (presented.key.mode !== mode) throw wrongMode(presented.key);
  return presented;
}
