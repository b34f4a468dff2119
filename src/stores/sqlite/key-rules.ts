import type { Key, KeyRules } from '../../core/model.ts';
import type { KeyRulesChange } from '../../ports/index.ts';
import type { Connection } from './engine/connection.ts';

/** The column of every rule of a key. */
const columns = {
  maxRank: 'max_rank',
  minRank: 'min_rank',
  direction: 'direction',
  selfRank: 'self_rank',
  isSystem: 'is_system',
  ratePerMinute: 'rate',
} as const satisfies Record<keyof KeyRules, string>;

export const ruleNames = Object.keys(columns) as Array<keyof KeyRules>;

/** The columns of a key's rules from `keys AS k`. */
export const ruleColumns = ruleNames.map((rule) => `k.${columns[rule]} AS "${rule}"`).join(', ');

/** Sets the rules that are named, null for none; part of a transaction. Returns what became of each that is different now. */
export function setRules(
  db: Connection,
  key: Pick<Key, 'id'> & KeyRules,
  change: KeyRulesChange,
): Record<string, { from: unknown; to: unknown }> {
  const changed = ruleNames.filter((rule) => change[rule] !== undefined && change[rule] !== (key[rule] ?? null));
  for (const rule of changed) {
    const value = change[rule];
    db.run(`UPDATE keys SET ${columns[rule]} = @value WHERE id = @id`, {
      id: key.id,
      value: typeof value === 'boolean' ? Number(value) : value,
    });
  }
  return Object.fromEntries(changed.map((rule) => [rule, { from: key[rule] ?? null, to: change[rule] }]));
}

/** The rules among the fields of something that has them. */
export function rulesOf(key: KeyRules): KeyRules {
  return Object.fromEntries(ruleNames.flatMap((rule) => (key[rule] === undefined ? [] : [[rule, key[rule]]])));
}
