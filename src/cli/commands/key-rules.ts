import type { KeyRulesChange } from '../../core/key-changes.ts';
import { directions, type KeyRules } from '../../core/model.ts';
import type { RoleName } from '../../core/role-scheme.ts';
import type { Cli } from '../cli.ts';
import { choice, option, optionPair, type ValuesOf } from '../command.ts';
import { asBound, orNone, wholeNumber } from '../input/arguments.ts';
import { roleOf } from '../input/people.ts';

const bound = orNone(asBound);

/** Shared by `key create` and `key set`. */
export const ruleOptions = {
  maxRank: option(
    '--max-rank <rank>',
    "the key can't change ranks above this one (number or role name); none: only policy.max_rank applies",
    bound,
  ),
  minRank: option(
    '--min-rank <rank>',
    "the key can't change ranks below this one (number or role name); none: only policy.min_rank applies",
    bound,
  ),
  direction: choice('--direction <direction>', 'the changes that the key can make', [...directions, 'both']),
  selfRank: choice('--self-rank <rule>', "deny: players can't rank themselves; allow: policy.self_rank decides", [
    'allow',
    'deny',
  ]),
  system: optionPair(
    ['--system', 'for a game that changes ranks automatically: policy.ranker_check needs no player behind a change'],
    ['--no-system', 'for a game whose players rank each other'],
  ),
  privileged: optionPair(
    ['--privileged', 'the key may give and take privileged roles, regardless of policy.privileged_roles'],
    ['--no-privileged', 'the key may give and take privileged roles only if policy.privileged_roles allows it'],
  ),
  anyPlace: optionPair(
    ['--any-place', 'for a bot or an online shop: the key needs no place and no whitelist'],
    ['--no-any-place', 'for a game: the key works only from the places on its whitelist'],
  ),
  rate: option(
    '--rate <number>',
    'rank requests per minute; none: limits.rank applies',
    orNone(wholeNumber(1, 1_000_000)),
  ),
};

/** Converts the options to rules. A limit that is given as a role name changes along with that role's rank. */
export async function rulesIn(
  cli: Cli,
  { maxRank, minRank, direction, selfRank, system, privileged, anyPlace, rate }: ValuesOf<typeof ruleOptions>,
): Promise<KeyRulesChange> {
  const max = maxRank === undefined ? undefined : await boundOf(cli, maxRank);
  const min = minRank === undefined ? undefined : await boundOf(cli, minRank);
  return {
    ...(max !== undefined && { maxRank: max.rank, maxRankRole: max.roleId }),
    ...(min !== undefined && { minRank: min.rank, minRankRole: min.roleId }),
    ...(direction !== undefined && { direction: direction === 'both' ? null : direction }),
    ...(selfRank !== undefined && { selfRank: selfRank === 'allow' ? null : selfRank }),
    ...(system !== undefined && { isSystem: system || null }),
    ...(privileged !== undefined && { isPrivileged: privileged || null }),
    ...(anyPlace !== undefined && { isAnyPlace: anyPlace || null }),
    ...(rate !== undefined && { ratePerMinute: rate === 'none' ? null : rate }),
  };
}

/** `roleId` is set if a role name was given, so that the limit follows the role. */
async function boundOf(cli: Cli, asked: RoleName): Promise<{ rank: number | null; roleId: number | null }> {
  if (typeof asked === 'number') return { rank: asked, roleId: null };
  if (asked === 'none') return { rank: null, roleId: null };
  return cli.withRanking(async (app, call) => {
    const { rank, id } = (await roleOf(cli, app, asked, call)).target;
    return { rank, roleId: id };
  });
}

/** Summarizes a key's rules, e.g. `rank 10 to 50, promote only`. */
export function describeRules({
  minRank,
  maxRank,
  direction,
  selfRank,
  isSystem,
  isPrivileged,
  isAnyPlace,
  isForDiscord,
  ratePerMinute,
}: KeyRules): string {
  const words = [
    ...rankBounds(minRank, maxRank),
    ...(direction === undefined ? [] : [`${direction} only`]),
    ...(selfRank === undefined ? [] : ['no self-rank']),
    ...(isSystem ? ['system'] : []),
    ...(isPrivileged ? ['privileged'] : []),
    ...(isAnyPlace ? ['any place'] : []),
    ...(isForDiscord ? ['for Discord'] : []),
    ...(ratePerMinute === undefined ? [] : [`${ratePerMinute} a minute`]),
  ];
  return words.join(', ') || '-';
}

function rankBounds(min: number | undefined, max: number | undefined): string[] {
  if (min === undefined) return max === undefined ? [] : [`up to rank ${max}`];
  return [max === undefined ? `from rank ${min}` : `rank ${min} to ${max}`];
}
