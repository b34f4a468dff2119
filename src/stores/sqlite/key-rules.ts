import type { KeyRulesChange } from '../../core/key-rules.ts';
import { ruleNames } from '../../core/key-rules.ts';
import { keyRuleColumns as columns } from '../columns.ts';
import type { Connection } from './engine/connection.ts';

/** The columns of a key's rules from `keys AS k`. */
export const ruleColumns = ruleNames.map((rule) => `k.${columns[rule]} AS "${rule}"`).join(', ');

/** Sets the rules that are named, null for none; part of a transaction. */
export function setRules(db: Connection, keyId: string, change: KeyRulesChange): void {
  for (const rule of ruleNames) {
    const value = change[rule];
    if (value === undefined) continue;
    db.run(`UPDATE keys SET ${columns[rule]} = @value WHERE id = @keyId`, {
      keyId,
      value: typeof value === 'boolean' ? Number(value) : value,
    });
  }
}
