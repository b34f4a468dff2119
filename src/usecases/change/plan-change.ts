import { isRankdError, RankdError } from '../../base/errors.ts';
import {
  refusalAboveActing,
  refusalOfOwnersRank,
  refusalOfUntouchable,
  standingWords,
} from '../../core/acting-account.ts';
import { roleTitle } from '../../core/describe.ts';
import type { ActingAccount, Member, RankChange, RankRequest, Role } from '../../core/model.ts';
import { earlyReturnOf, policyRules, refusalOfEarlyReturn, refusalOfUndo, rulesFor } from '../../core/policy.ts';
import { policyFor } from '../../core/policy-names.ts';
import { planAlongside, planAtLeast, type RolePlan, rolePlan, suspensionPlan } from '../../core/role-plan.ts';
import { heldRoles, nameForRequest } from '../../core/role-scheme.ts';
import { type GroupScheme, refusalOfMisfit } from '../../core/role-settings.ts';
import { mustVerifyRanker, refusalOfRanker } from '../../core/rules/rankers.ts';
import type { PolicyCase, PolicyRule } from '../../core/rules/rule.ts';
import { nextRole, refusalOfOtherRank, resolveAlongside, suspendedRole } from '../../core/target.ts';
import type { CallContext } from '../../ports/index.ts';
import { openHold } from '../holds/open-hold.ts';
import { type ChangeCommand, callForConfirming, callForReading, type Ranking } from './ranking.ts';
import { type MemberReading, readMember } from './read-member.ts';

type PlanContext = MemberReading & Pick<Ranking, 'policy' | 'deadlineMs'>;

/** The plan for a command, based on the member's current roles. It has not been checked against the rules yet. */
export interface PlannedChange {
  plan: RolePlan;
  scheme: GroupScheme;
  /** The requested number, or the target role's if a step, a role name or a suspension determines the target. */
  newRankId: number;
  /** `undefined` if the platform does not report the acting account. */
  acting: ActingAccount | undefined;
}

type PlanRequest = Pick<
  ChangeCommand,
  'request' | 'kind' | 'step' | 'stepCount' | 'roleName' | 'ifRank' | 'holding' | 'atLeast' | 'hold'
> & {
  /** rankd's last change to the member, if the caller has already read it. */
  written?: Promise<RankChange | undefined> | undefined;
};

export async function planChange(
  app: PlanContext,
  command: PlanRequest,
  call: CallContext,
  examiner: Examiner = strict,
): Promise<PlannedChange> {
  const { request, kind, step, roleName, ifRank, holding, hold } = command;
  const acting = await examiner.find(
    'platform',
    async () => {
      const found = await app.group.acting(call);
      await app.group.judged((scheme) => requireFit(scheme, hold), call);
      return found;
    },
    (found) =>
      found === undefined
        ? 'responds, but does not report the acting account'
        : `acting as ${found.userId}, ${standingWords(found)}`,
  );
  const isRankRequested = step === undefined && hold?.kind !== 'suspension';
  const name = roleName ?? request.newRankId;
  const findTarget = async () =>
    kind === undefined
      ? (await app.group.target(name, call)).target
      : app.group.judged((scheme) => resolveAlongside(scheme, name), call);
  const asked = isRankRequested
    ? await examiner.find('rank', findTarget, (found) => `${name} is ${roleTitle(found)}, role ${found.id}`)
    : undefined;
  const suspendedAs =
    hold?.kind === 'suspension'
      ? await examiner.find(
          'rank',
          () => app.group.judged((scheme) => roleOfSuspension(scheme, hold), call),
          (found) => `while suspended, ${roleTitle(found)}, role ${found.id}`,
        )
      : undefined;
  const found = await examiner.find(
    'member',
    async () => {
      const refusal = refusalOfUntouchable(request.rankeeId, acting);
      if (refusal !== undefined) throw refusal;
      const expected = asked ?? suspendedAs ?? (await nextOf(app, command, call));
      return findMember(app, { userId: request.rankeeId, expected, written: command.written }, call);
    },
    (found) => `holds ${heldRoles(found.scheme.roles, found.member).map(roleTitle).join(', ')}`,
  );
  // Reading the member may have revealed that the number or name now refers to a different role, or that the role's
  // rank has changed.
  const { plan, scheme, target } = await planConfirmed(
    app,
    found,
    async (scheme) => {
      const target = isRankRequested ? await findTarget() : undefined;
      requireFit(scheme, hold);
      const { member } = found;
      const oldRankName = app.policy.stale === 'refuse' ? request.oldRankName : undefined;
      const otherRank = refusalOfOtherRank({ scheme, member }, { ifRank, holding, oldRankName }, request);
      if (otherRank !== undefined) throw otherRank;
      return { plan: planFor(app, command, { target, member, scheme }), target };
    },
    call,
  );
  const isNumbered = isRankRequested && roleName === undefined && plan.target.id === target?.id;
  const newRankId = isNumbered ? request.newRankId : nameForRequest(scheme, plan.target);
  return { plan, scheme, newRankId, acting };
}

/** Guesses the target of a step from the roles that rankd's last change left. */
async function nextOf(
  app: Pick<Ranking, 'group' | 'policy'>,
  command: PlanRequest,
  call: CallContext,
): Promise<Role | undefined> {
  const [scheme, written] = await Promise.all([app.group.scheme(call), command.written]);
  const member = { userId: command.request.rankeeId, roleIds: written?.rolesAfter ?? [] };
  return guessed(() => planFor(app, command, { target: undefined, member, scheme }));
}

/**
 * Returns the target of a plan based on guessed roles; `undefined` if planning fails. The guess makes it possible to
 * confirm the target while the member is being read; a wrong guess only costs another read.
 */
export function guessed(plan: () => RolePlan): Role | undefined {
  try {
    return plan().target;
  } catch {
    return undefined;
  }
}

/** Plans a change for a member who was just read, and replans if the target role has changed. */
export async function planConfirmed<T extends { plan: RolePlan }>(
  app: PlanContext,
  { member, scheme }: { member: Member; scheme: GroupScheme },
  plan: (scheme: GroupScheme) => Promise<T>,
  call: CallContext,
): Promise<T & { scheme: GroupScheme }> {
  for (let known = scheme; ; known = await schemeOf(app, member, call)) {
    const planned = await plan(known);
    if (await app.group.confirm(planned.plan.target, callForConfirming(app, call)))
      return { ...planned, scheme: known };
  }
}

/** Runs `work`. If the acting account seems to rank too low, re-reads the account and the roles, and retries once. */
export async function withCurrentReach<T>(
  { group }: Pick<Ranking, 'group'>,
  call: CallContext,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isRankdError(error, 'above_acting_account') || !(await group.renew(call))) throw error;
    return work();
  }
}

function planFor(
  { policy }: Pick<Ranking, 'policy'>,
  { kind, step, stepCount, hold, atLeast }: PlanRequest,
  { target, member, scheme }: { target: Role | undefined; member: Member; scheme: GroupScheme },
): RolePlan {
  if (target !== undefined && kind !== undefined) return planAlongside(scheme, member, target, kind);
  if (target !== undefined) return (atLeast ? planAtLeast : rolePlan)(scheme, member, target);
  if (step !== undefined)
    return rolePlan(
      scheme,
      member,
      nextRole(scheme, member, { step, stepCount }, policyFor(scheme, policy).lockedRoles),
    );
  return suspensionPlan(scheme, member, roleOfSuspension(scheme, hold));
}

function roleOfSuspension(scheme: GroupScheme, hold: PlanRequest['hold']): Role {
  const role = hold?.kind === 'suspension' ? hold.role : undefined;
  return suspendedRole(scheme, role ?? scheme.named['policy.suspension.role'][0]?.id);
}

/** Throws `configuration_misfit` if the change depends on a setting that does not identify a role in the group. */
function requireFit(scheme: GroupScheme, hold: PlanRequest['hold']): void {
  const isSuspension = hold?.kind === 'suspension';
  const namesRole = isSuspension && hold.role !== undefined; // then policy.suspension.role does not matter
  const misfit = refusalOfMisfit(scheme, namesRole ? 'everything' : isSuspension ? 'suspensions' : 'ranks');
  if (misfit !== undefined) throw misfit;
}

/**
 * Reads the member, and the current scheme including every role that the member holds. `expected` is the role to give,
 * if it is known in advance. Throws `member_not_found`, or `above_acting_account` for the owner.
 */
export async function findMember(
  app: PlanContext,
  { userId, expected, written }: { userId: number; expected?: Role | undefined; written?: PlanRequest['written'] },
  call: CallContext,
): Promise<{ member: Member; scheme: GroupScheme }> {
  const confirm = () => app.group.confirm(expected, callForConfirming(app, call));
  const [member] = await Promise.all([readMember(app, userId, callForReading(app, call), written), confirm()]);
  await confirm(); // re-reads only if reading the member took too long
  if (member === undefined) {
    throw new RankdError('member_not_found', `User ${userId} is not a member of the group.`, {
      hint: 'check the user id; the user must join the group first, and a join request counts only once it is accepted',
    });
  }
  return { member, scheme: await schemeOf(app, member, call) };
}

/**
 * Returns the current scheme, including every role that the member holds. Throws `above_acting_account` for the owner
 * and, if the owner is unknown, for every member with the owner's rank.
 */
async function schemeOf(app: PlanContext, member: Member, call: CallContext): Promise<GroupScheme> {
  const { userId } = member;
  const scheme = await app.group.schemeFor(member, call);
  const ownersRole = heldRoles(scheme.roles, member).find(({ kind }) => kind === 'owner');
  if (ownersRole === undefined) return scheme;
  const owner = await app.group.owner(callForConfirming(app, call));
  if (owner === undefined || owner === userId) throw refusalOfOwnersRank(userId, ownersRole);
  // In groups that Roblox has migrated, an ordinary role can have rank 255, and only GetGroup identifies the owner.
  const roles = scheme.roles.map((role): Role => (role === ownersRole ? { ...role, kind: 'custom' } : role));
  return { ...scheme, roles };
}

/** Not exported, so that only this file can mark a plan as checked. */
declare const checked: unique symbol;

/** A plan that the policy allows. The rules in `recheck` are checked again when the change begins. */
export interface ApprovedChange extends PlannedChange {
  readonly policyCase: PolicyCase;
  readonly recheck: readonly PolicyRule[];
  readonly [checked]: true;
}

/** The names of the checks that `planChange` and `checkPlan` run, in order. */
export const checkNames = [
  'platform',
  'rank',
  'member',
  ...policyRules.map(({ name }) => name),
  'acting account',
  'ranker rank',
];

type Asked = Pick<ChangeCommand, 'request' | 'caller' | 'atLeast'> & {
  kind?: keyof typeof rulesFor;
  paces?: Paces;
};

export function rulesKindOf({ hold, kind }: Pick<ChangeCommand, 'hold' | 'kind'>): 'rank' | 'role' | 'suspension' {
  if (kind !== undefined) return 'role';
  return hold?.kind === 'suspension' ? 'suspension' : 'rank';
}

/**
 * Checks a plan against the rules, unless it is for a rank or an extra role and needs no writes, because the member's
 * roles are already right. Throws the first refusal, unless `examiner` collects refusals.
 */
export async function checkPlan(
  app: PlanContext,
  { request, caller, atLeast, kind = 'rank', paces, ...planned }: Asked & PlannedChange,
  call: CallContext,
  examiner: Examiner = strict,
): Promise<ApprovedChange> {
  const { plan, scheme, acting } = planned;
  // a suspension can begin or end without changing any role
  const isQuiet = (kind === 'rank' || kind === 'role') && plan.steps.length === 0;
  const rules = rulesFor[kind];
  const asked = { policy: policyFor(scheme, app.policy), key: caller.rules, request, scheme, plan, acting };
  const earlyReturn = kind === 'suspension' ? earlyReturnOf(asked, await openHold(app, request.rankeeId)) : undefined;
  const policyCase: PolicyCase = {
    ...asked,
    ...(earlyReturn !== undefined && { earlyReturn }),
    ...(isQuiet ? noPace : paceOf(app, paces ?? (await pacesOf(app, request)))),
  };
  if (!isQuiet) {
    for (const { name, refusal } of rules) examiner.report(name, refusal(policyCase));
    const aboveActing = refusalAboveActing(policyCase) ?? refusalOfEarlyReturn(policyCase, refusalAboveActing);
    examiner.report('acting account', aboveActing);
    await examiner.find(
      'ranker rank',
      () => verifyRanker(app, policyCase, call),
      (roles) =>
        roles === undefined
          ? 'not required by the policy'
          : `${request.rankerId} holds ${roles.map(roleTitle).join(', ') || 'no role'}`,
    );
  }
  // With `atLeast`, a member above the ceiling is left unchanged, not refused.
  return approved({ ...planned, policyCase, recheck: isQuiet && atLeast ? [] : rules });
}

/**
 * Checks a plan that restores roles, and throws the refusal. Applies only the policy's ceiling, floor, locked roles and
 * protected members, and the reach of the acting account.
 */
export function checkUndo(
  app: Pick<Ranking, 'policy'>,
  { request, ...planned }: Pick<ChangeCommand, 'request'> & PlannedChange,
): ApprovedChange {
  const { scheme, plan, acting } = planned;
  const policy = policyFor(scheme, app.policy);
  const policyCase: PolicyCase = { policy, key: undefined, request, scheme, plan, acting, ...noPace };
  const refusal = refusalOfUndo(policyCase);
  if (refusal !== undefined) throw refusal;
  return approved({ ...planned, policyCase, recheck: [] });
}

function approved(change: Omit<ApprovedChange, typeof checked>): ApprovedChange {
  return change as ApprovedChange;
}

type Pace = Pick<PolicyCase, 'sinceLastChangeMs' | 'sinceRankersLastChangeMs'>;

const noPace: Pace = { sinceLastChangeMs: undefined, sinceRankersLastChangeMs: undefined };

/** The times of the last change to the rankee and of the last change by the ranker (epoch milliseconds). */
export interface Paces {
  changedAt: number | undefined;
  activeAt: number | undefined;
}

export async function pacesOf(
  { store, policy }: Pick<Ranking, 'store' | 'policy'>,
  { rankeeId, rankerId }: Pick<RankRequest, 'rankeeId' | 'rankerId'>,
): Promise<Paces> {
  const [changedAt, activeAt] = await Promise.all([
    policy.cooldowns.length > 0 ? store.lastAppliedAt(rankeeId) : undefined,
    policy.rankerCooldownMs > 0 ? store.lastRankedOthersAt(rankerId) : undefined,
  ]);
  return { changedAt, activeAt };
}

function paceOf({ clock }: Pick<Ranking, 'clock'>, { changedAt, activeAt }: Paces): Pace {
  const since = (at: number | undefined) => (at === undefined ? undefined : clock.now() - at);
  return { sinceLastChangeMs: since(changedAt), sinceRankersLastChangeMs: since(activeAt) };
}

/**
 * Reads and checks the ranker's roles if the policy requires it. Throws `ranker_not_allowed`. Runs last, so that a
 * change refused by another check costs no platform call.
 */
async function verifyRanker(app: PlanContext, of: PolicyCase, call: CallContext): Promise<Role[] | undefined> {
  if (!mustVerifyRanker(of)) return undefined;
  const ranker = await readMember(app, of.request.rankerId, callForReading(app, call));
  const roles = ranker && heldRoles((await app.group.schemeFor(ranker, call)).roles, ranker);
  const refusalOf = (plan: PolicyCase) => refusalOfRanker(plan, roles);
  const refusal = refusalOf(of) ?? refusalOfEarlyReturn(of, refusalOf);
  if (refusal !== undefined) throw refusal;
  return roles;
}

/** Handles the results of checks: `strict` throws the first refusal, and `rank test` collects all results. */
export interface Examiner {
  /** Runs a check that later checks depend on, and throws its refusal. */
  find<T>(name: string, check: () => Promise<T>, describe: (found: T) => string): Promise<T>;
  /** Reports a check's result: the refusal, or `undefined` if the check passed. */
  report(name: string, refusal: RankdError | undefined): void;
}

export const strict: Examiner = {
  find: (_name, check) => check(),
  report: (_name, refusal) => {
    if (refusal !== undefined) throw refusal;
  },
};
