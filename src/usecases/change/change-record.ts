import { RankdError } from '../../base/errors.ts';
import { shorten } from '../../base/text.ts';
import { newChangeId, newId, withoutKeys } from '../../core/api-key.ts';
import { endState, isReplayed } from '../../core/change-codes.ts';
import { applyOutcome, type ChangeOutcome, compensating } from '../../core/change-state.ts';
import { type HoldPart, maxReasonLength, type RankChange, type RankRequest } from '../../core/model.ts';
import { takesAway } from '../../core/role-plan.ts';
import { isPrivileged } from '../../core/rules/ranks.ts';
import type { PolicyCase } from '../../core/rules/rule.ts';
import type { Ports } from '../../ports/index.ts';
import type { ApprovedChange } from './plan-change.ts';
import type { ChangeCommand, Ranking, RequestedHold } from './ranking.ts';

/** Longer than any Roblox name. Without a limit, refused requests made with a leaked key could fill the database. */
const maxStoredCharacters = 100;

export function draftOf(
  { group, clock }: Pick<Ranking, 'group' | 'clock'>,
  {
    caller,
    request,
    kind,
    hold,
    idempotency,
  }: Pick<ChangeCommand, 'caller' | 'request' | 'kind' | 'hold' | 'idempotency'>,
): RankChange {
  const requestedAt = clock.now();
  return {
    ...withShortTexts(request),
    ...(kind !== undefined && { kind }),
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

function holdPart(asked: RequestedHold): HoldPart {
  if (asked.kind === 'lift') return { does: 'lift', id: asked.id };
  const { kind, endsAt } = asked;
  return { does: 'begin', id: newId('hold'), kind, ...(endsAt !== undefined && { endsAt }) };
}

function withShortTexts(request: RankRequest): RankRequest {
  const shortened = { ...request };
  for (const name of textFields) {
    const text = request[name];
    if (text !== undefined) shortened[name] = shorten(text, maxStoredCharacters);
  }
  const { reason } = request;
  return { ...shortened, ...(reason !== undefined && { reason: shorten(withoutKeys(reason), maxReasonLength) }) };
}

const textFields = ['rankerName', 'rankeeName', 'command', 'oldRankName', 'prefix', 'webhookHost'] as const;

export function withPlan(
  draft: RankChange,
  {
    plan,
    scheme,
    policyCase: { policy, earlyReturn },
  }: Pick<ApprovedChange, 'plan' | 'scheme'> & {
    policyCase: Pick<PolicyCase, 'policy' | 'earlyReturn'>;
  },
): RankChange {
  const { from, to } = plan.goal;
  const involved = scheme.roles.filter(({ id }) => from.includes(id) || to.includes(id));
  const counted = scheme.roles.filter((role) => involved.includes(role) || earlyReturn?.goal.to.includes(role.id));
  return {
    ...draft,
    roleId: plan.target.id,
    ...(plan.highestBefore !== undefined && plan.kind === undefined && { oldRoleId: plan.highestBefore.id }),
    rolesBefore: from,
    rolesAfter: to,
    roles: involved.map(({ id, name, rank }) => ({ id, name, rank })),
    demotion: takesAway(plan) || (draft.hold?.does === 'begin' && draft.hold.kind === 'suspension'),
    topRank: Math.max(0, ...counted.map(({ rank }) => rank)),
    privileged: counted.some((role) => isPrivileged(role, policy.privilegedRoles)),
  };
}

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

export interface ChangeResult {
  outcome: ChangeOutcome;
  error?: RankdError;
  /** True if the first write was refused but may have taken effect. */
  isInDoubt?: boolean;
}

export function resultOf(error: RankdError): ChangeResult {
  return { outcome: outcomeOf(error), error };
}

export function outcomeOf(error: RankdError): ChangeOutcome {
  return {
    state: endState(error.code),
    code: error.code,
    message: error.message,
    ...(!isReplayed(error.code) && { forgetIdempotencyKey: true }),
  };
}

/**
 * Returns the error for the caller, or `undefined` if the change was applied. `error` is the original error, if known.
 */
export function errorOf({ state, code, message }: RankChange, error?: RankdError): RankdError | undefined {
  if (state === 'applied') return undefined;
  // While a change is being reverted, it has the refusal's code, but its outcome is unknown.
  if (state === 'unknown' || code === null) return outcomeUnknown(error);
  const { retryAfterMs, hint, cause } = error ?? {};
  return new RankdError(code, message, { retryAfterMs, hint, cause });
}

export function outcomeUnknown(cause?: unknown): RankdError {
  return new RankdError(
    'outcome_unknown',
    'The change was sent, but could not be confirmed in time. rankd keeps checking; the history will show the outcome.',
    { cause },
  );
}

type RecordPorts = Pick<Ports, 'store' | 'clock'>;

/** Stores the outcome of an open change. Returns `undefined` if this process does not hold the change. */
export function recordOutcome(
  { store, clock }: RecordPorts,
  changeId: string,
  outcome: ChangeOutcome,
): Promise<RankChange | undefined> {
  return store.updateChange(changeId, (stored) => applyOutcome(stored, outcome, clock.now()));
}

/**
 * Records that an open change is being reverted. Must be called before the first write that reverts it. Throws
 * `conflict` if this process no longer holds the change.
 */
export async function recordCompensating(
  { store, clock }: RecordPorts,
  changeId: string,
  { code, message }: Pick<RankdError, 'code' | 'message'>,
): Promise<void> {
  const stored = await store.updateChange(changeId, (change) => compensating(change, { code, message }, clock.now()));
  if (stored === undefined)
    throw new RankdError('conflict', `Change ${changeId} has already ended, or another process is working on it.`);
}
