import { shorten } from '../../base/text.ts';
import { newChangeId, newId, withoutKeys } from '../../core/api-key.ts';
import type { ChangeOutcome } from '../../core/change-state.ts';
import { type HoldPart, maxReasonLength, type RankChange, type RankRequest } from '../../core/model.ts';
import { takesAway } from '../../core/role-plan.ts';
import { isPrivileged } from '../../core/rules/privileged-roles.ts';
import type { PolicyCase } from '../../core/rules/rule.ts';
import type { ChangeCommand, HoldAsked } from './change-command.ts';
import type { ApprovedChange } from './check-plan.ts';
import type { Ranking } from './ranking.ts';

/** More than any name on Roblox has. The texts of refused requests are stored too, and a leaked key can send many. */
const keptCharacters = 100;

/** The record of a change that is requested now. It is not planned yet. */
export function draftOf(
  { group, clock }: Pick<Ranking, 'group' | 'clock'>,
  { caller, request, hold, idempotency }: Pick<ChangeCommand, 'caller' | 'request' | 'hold' | 'idempotency'>,
): RankChange {
  const requestedAt = clock.now();
  return {
    ...withShortTexts(request),
    id: newChangeId(requestedAt),
    group: group.title,
    state: 'pending',
    code: null,
    message: '',
    rolesBefore: [],
    rolesAfter: [],
    phase: 'forward',
    by: withoutKeys(caller.by),
    ...(caller.keyId !== undefined && { keyId: caller.keyId }),
    ...(caller.placeId !== undefined && { placeId: caller.placeId }),
    ...(idempotency !== undefined && { idempotencyKey: idempotency.key, fingerprint: idempotency.fingerprint }),
    ...(hold !== undefined && { hold: holdPart(hold) }),
    dryRun: caller.dryRun,
    demotion: false,
    topRank: 0,
    privileged: false,
    requestedAt,
  };
}

function holdPart(asked: HoldAsked): HoldPart {
  if (asked.kind === 'lift') return { does: 'lift', id: asked.id };
  const { kind, endsAt } = asked;
  return { does: 'begin', id: newId('hold'), kind, ...(endsAt !== undefined && { endsAt }) };
}

function withShortTexts(request: RankRequest): RankRequest {
  const shortened = { ...request };
  for (const name of textFields) {
    const text = request[name];
    if (text !== undefined) shortened[name] = shorten(text, keptCharacters);
  }
  const { reason } = request;
  return { ...shortened, ...(reason !== undefined && { reason: shorten(withoutKeys(reason), maxReasonLength) }) };
}

const textFields = ['rankerName', 'rankeeName', 'command', 'oldRankName', 'prefix', 'webhookHost'] as const;

/** The record once there is a plan. */
export function withPlan(
  draft: RankChange,
  {
    plan,
    scheme,
    policyCase: { policy, comeback },
  }: Pick<ApprovedChange, 'plan' | 'scheme'> & {
    policyCase: Pick<PolicyCase, 'policy' | 'comeback'>;
  },
): RankChange {
  const { from, to } = plan.goal;
  const involved = scheme.roles.filter(({ id }) => from.includes(id) || to.includes(id));
  const counted = scheme.roles.filter((role) => involved.includes(role) || comeback?.goal.to.includes(role.id));
  return {
    ...draft,
    roleId: plan.target.id,
    ...(plan.highestBefore !== undefined && { oldRoleId: plan.highestBefore.id }),
    rolesBefore: from,
    rolesAfter: to,
    roles: involved.map(({ id, name, rank }) => ({ id, name, rank })),
    demotion: takesAway(plan) || (draft.hold?.does === 'begin' && draft.hold.kind === 'suspension'),
    topRank: Math.max(0, ...counted.map(({ rank }) => rank)),
    privileged: counted.some((role) => isPrivileged(role, policy.privilegedRoles)),
  };
}

/** The record once the change has ended, at `now` (epoch milliseconds). */
export function withOutcome(
  change: RankChange,
  { state, code, message, rolesAfter }: ChangeOutcome,
  now: number,
): RankChange {
  const prefix = change.dryRun ? 'Test key, nothing changed: ' : '';
  return {
    ...change,
    state,
    code,
    message: prefix + message,
    rolesAfter: rolesAfter ?? (state === 'applied' ? change.rolesAfter : change.rolesBefore),
    ...(state !== 'unknown' && { finishedAt: now }),
  };
}
