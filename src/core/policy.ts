import { cooldown, rankerCooldown } from './rules/cooldowns.ts';
import { direction, steps } from './rules/moves.ts';
import { privilegedRoles } from './rules/privileged-roles.ts';
import { protectedMembers } from './rules/protected-members.ts';
import { namedRanker, selfRank } from './rules/rankers.ts';
import { ceiling, floor, lockedRoles } from './rules/ranks.ts';
import type { PolicyRule } from './rules/rule.ts';

/** Every rule that needs no further look at the group, in the order in which they are answered. */
export const policyRules: readonly PolicyRule[] = [
  ceiling,
  floor,
  lockedRoles,
  privilegedRoles,
  protectedMembers,
  direction,
  steps,
  selfRank,
  namedRanker,
  cooldown,
  rankerCooldown,
];
