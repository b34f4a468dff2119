import { type KeyRulesChange, ruleNames } from '../../core/key-rules.ts';
import type { Key, KeySecret } from '../../core/model.ts';
import { keyRuleColumns } from '../columns.ts';
import { withoutNulls } from '../row.ts';
import type { Transaction } from './engine/database.ts';
import { fromText } from './engine/statement.ts';

/** A value of the model as it is selected: an absent field is null. */
export type Nullable<Model> = {
  [Name in keyof Model]-?: undefined extends Model[Name] ? NonNullable<Model[Name]> | null : Model[Name];
};

export type KeyRow = Omit<Nullable<Key>, 'secrets'> & { secrets: Nullable<KeySecret>[] | null };

/** The columns of a key's rules from `keys AS k`. */
const ruleColumns = ruleNames.map((rule) => `k.${keyRuleColumns[rule]} AS "${rule}"`).join(', ');

/** The columns of a `KeyRow` from `keys AS k`, with the secrets that are accepted at `@now`, newest first. */
export const keyColumns = `
  k.id, k.name, k.mode, k.scopes, ${ruleColumns},
  k.created_at AS "createdAt", k.expires_at AS "expiresAt",
  k.revoked_at AS "revokedAt", k.paused_at AS "pausedAt", k.resumed_at AS "resumedAt", k.is_simulated AS "isSimulated",
  CASE WHEN k.revoked_at IS NULL THEN k.declared_in END AS "declaredIn",
  (SELECT json_agg(
            json_build_object('masked', s.masked, 'createdAt', s.created_at, 'replacedAt', s.replaced_at,
                              'expiresAt', s.expires_at, 'lastUsedAt', u.last_used_at, 'lastPlaceId', u.last_place_id)
            ORDER BY s.seq DESC)
   FROM rankd.key_secrets AS s LEFT JOIN rankd.secret_uses AS u ON u.secret_seq = s.seq
   WHERE s.key_id = k.id AND (s.expires_at IS NULL OR s.expires_at > @now)) AS secrets`;

export function toKey({ secrets, isSystem, isPrivileged, isAnyPlace, isSimulated, isForDiscord, ...row }: KeyRow): Key {
  const flags = {
    ...(isSystem && { isSystem }),
    ...(isPrivileged && { isPrivileged }),
    ...(isAnyPlace && { isAnyPlace }),
    ...(isSimulated && { isSimulated }),
    ...(isForDiscord && { isForDiscord }),
  };
  const accepted = (secrets ?? []).map(({ masked, ...times }) => ({
    masked: fromText(masked),
    ...withoutNulls(times),
  }));
  return { ...withoutNulls(row), ...flags, secrets: accepted };
}

/** Sets the rules that are named, null for none; part of a transaction. */
export function setRules(transaction: Transaction, keyId: string, change: KeyRulesChange): void {
  for (const rule of ruleNames) {
    const value = change[rule];
    if (value === undefined) continue;
    transaction.run(`UPDATE rankd.keys SET ${keyRuleColumns[rule]} = @value WHERE id = @keyId`, { keyId, value });
  }
}
