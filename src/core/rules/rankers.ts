import { RankdError } from '../../base/errors.ts';
import { originHint, roleTitle } from '../describe.ts';
import type { Role } from '../model.ts';
import { heldRoles } from '../role-scheme.ts';
import { isNamed, type PolicyCase, type PolicyRule, touchedRoles } from './rule.ts';

export const givenReason: PolicyRule = {
  name: 'reason',
  refusal({ policy, key, request }) {
    if (policy.reason === 'optional' || key === undefined || (request.reason ?? '').trim() !== '') return undefined;
    return new RankdError('reason_required', 'The request gives no reason, but policy.reason is required.', {
      hint: `send a reason with the request, or set policy.reason to optional ${originHint}`,
    });
  },
};

export const selfRank: PolicyRule = {
  name: 'self-rank',
  refusal(of) {
    const { policy, key, request } = of;
    if (isUnlinked(of) && policy.selfRank === 'deny') return notLinked('policy.self_rank is deny');
    if (isUnlinked(of) && key?.selfRank === 'deny') return notLinked("the key's self_rank is deny");
    if (request.rankerId !== request.rankeeId) return undefined;
    if (policy.selfRank === 'deny') {
      return notAllowed(
        'Members may not change their own rank here: policy.self_rank is deny.',
        `set policy.self_rank to allow ${originHint}`,
      );
    }
    if (key?.selfRank !== 'deny') return undefined;
    return notAllowed(
      'Members may not change their own rank with this key: its self_rank is deny.',
      'rankd key set KEY --self-rank allow',
    );
  },
};

/** Checks only that the request names a ranker other than the rankee; `refusalOfRanker` checks the ranker's rank. */
export const namedRanker: PolicyRule = {
  name: 'ranker',
  refusal(of) {
    const { rankerId, rankeeId } = of.request;
    if (of.policy.rankerCheck === 'off' || needsNoRanker(of)) return undefined;
    if (isUnlinked(of)) return notLinked(`policy.ranker_check is ${of.policy.rankerCheck}`);
    const rule = `policy.ranker_check is ${of.policy.rankerCheck}, and this is not a system key.`;
    const hint =
      'send the id of the player who requests the change; for a game that ranks on its own: rankd key set KEY --system';
    if (rankerId === 0) return notAllowed(`The request names no player as ranker (rankerId is 0): ${rule}`, hint);
    if (rankerId === rankeeId) return notAllowed(`Ranker and rankee are the same player: ${rule}`, hint);
    return undefined;
  },
};

/** True if the ranker's own rank must be read before the change. */
export function mustVerifyRanker(of: PolicyCase): boolean {
  return of.policy.rankerCheck === 'verify' && !needsNoRanker(of);
}

/**
 * Returns the refusal if the ranker's roles do not allow the change. `rankersRoles`: `undefined` if the ranker is not a
 * member. As on Roblox, all roles of both members count, and the group's owner can manage every role.
 */
export function refusalOfRanker(of: PolicyCase, rankersRoles: Role[] | undefined): RankdError | undefined {
  const { policy, request, scheme, plan, acting } = of;
  const { rankerId } = request;
  const hint = `have a higher-ranked member request the change, or set policy.ranker_check to claimed or off ${originHint}`;
  if (rankersRoles === undefined)
    return notAllowed(`Ranker ${rankerId} is not a member of the group: policy.ranker_check is verify.`, hint);
  if (rankerId === acting?.ownerId) return undefined;
  const rank = Math.max(0, ...rankersRoles.map((role) => role.rank));
  if (rank < policy.minRankerRank) {
    const least = `${policy.minRankerRank}, the minimum set by policy.min_ranker_rank`;
    return notAllowed(`Ranker ${rankerId} has rank ${rank}, below ${least}.`, hint);
  }
  const held = heldRoles(scheme.roles, { userId: request.rankeeId, roleIds: plan.goal.from });
  const notBelow = [...touchedRoles(scheme, plan), ...held].find((role) => role.rank >= rank);
  if (notBelow === undefined) return undefined;
  const what = held.includes(notBelow)
    ? `member ${request.rankeeId}, who holds ${roleTitle(notBelow)}`
    : roleTitle(notBelow);
  return notAllowed(
    `Ranker ${rankerId} has rank ${rank}, which is not above ${what}: policy.ranker_check is verify.`,
    hint,
  );
}

/** True if the request comes from a Discord user who is not linked to a Roblox user. */
function isUnlinked({ key, request }: PolicyCase): boolean {
  return key?.isForDiscord === true && request.rankerId === 0;
}

function notLinked(rule: string): RankdError {
  const message = `This Discord account is not linked to a Roblox user, but rankd needs one because ${rule}.`;
  return notAllowed(message, 'rankd discord link DISCORD_ID USER');
}

/** True if no ranker needs to be checked: the operator or a system key names none, or a system key names the rankee. */
function needsNoRanker({ key, request }: PolicyCase): boolean {
  if (key === undefined) return request.rankerId === 0;
  return key.isSystem === true && (request.rankerId === 0 || request.rankerId === request.rankeeId);
}

function notAllowed(message: string, hint: string): RankdError {
  return new RankdError('ranker_not_allowed', message, { hint });
}

export const protectedMembers: PolicyRule = {
  name: 'protected members',
  refusal({ policy, request, scheme, plan }) {
    const held = heldRoles(scheme.roles, { userId: request.rankeeId, roleIds: plan.goal.from });
    const role = held.find((candidate) => isNamed(candidate, policy.protectedRoles));
    const why = policy.protectedMembers.includes(request.rankeeId)
      ? 'is listed in policy.protected_members'
      : role && `holds ${roleTitle(role)}, one of policy.protected_roles`;
    if (why === undefined) return undefined;
    return new RankdError('member_protected', `Member ${request.rankeeId} ${why} and can't be ranked.`, {
      hint: `change policy.protected_members or policy.protected_roles ${originHint}`,
    });
  },
};
