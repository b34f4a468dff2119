import type { KeyRules } from './model.ts';

/** The rules to set; null removes a rule, and omitted ones stay as they are. */
export type KeyRulesChange = { [Rule in keyof KeyRules]?: KeyRules[Rule] | null };

export const ruleNames = [
  'maxRank',
  'minRank',
  'maxRankRole',
  'minRankRole',
  'direction',
  'selfRank',
  'isSystem',
  'isPrivileged',
  'isAnyPlace',
  'ratePerMinute',
  'isForDiscord',
] as const satisfies ReadonlyArray<keyof KeyRules>;

/** Picks the rules from an object's fields. */
export function rulesOf(key: KeyRules): KeyRules {
  return Object.fromEntries(ruleNames.flatMap((rule) => (key[rule] === undefined ? [] : [[rule, key[rule]]])));
}

/** Each rule whose value changes, with its value before and after. */
export function changedRules(before: KeyRules, change: KeyRulesChange): Record<string, { from: unknown; to: unknown }> {
  const changed = ruleNames.filter((rule) => change[rule] !== undefined && change[rule] !== (before[rule] ?? null));
  return Object.fromEntries(changed.map((rule) => [rule, { from: before[rule] ?? null, to: change[rule] }]));
}

/** The change that makes these the only rules. */
export function exactly(rules: KeyRules): KeyRulesChange {
  return { ...Object.fromEntries(ruleNames.map((rule) => [rule, null])), ...rules };
}
