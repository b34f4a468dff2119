import { refusalAboveActing } from '../../core/acting-account.ts';
import { roleTitle } from '../../core/describe.ts';
import type { RankRequest, Role } from '../../core/model.ts';
import { comebackOf, policyRules, refusalOfComeback, refusalOfUndo, rulesFor } from '../../core/policy.ts';
import { policyFor } from '../../core/policy-names.ts';
import { heldRoles } from '../../core/role-scheme.ts';
import { mustVerifyRanker, refusalOfRanker } from '../../core/rules/rankers.ts';
import type { PolicyCase, PolicyRule } from '../../core/rules/rule.ts';
import type { CallContext } from '../../ports/index.ts';
import { openHold } from '../holds/open-hold.ts';
import type { ChangeCommand } from './change-command.ts';
import { type Examiner, strict } from './examiner.ts';
import type { PlannedChange } from './plan-change.ts';
import type { Ranking } from './ranking.ts';
import { readMember } from './read-member.ts';

/** Only this file can mark a plan as checked. */
declare const checked: unique symbol;

/**
 * A plan that the policy allows, with the judged case. The rules in `recheck` are checked again when the change begins.
 */
export interface ApprovedChange extends PlannedChange {
  readonly policyCase: PolicyCase;
  readonly recheck: readonly PolicyRule[];
  readonly [checked]: true;
}

/** The names of all checks of a change, in order. */
export const checkNames = [
  'platform',
  'rank',
  'member',
  ...policyRules.map(({ name }) => name),
  'acting account',
  'ranker rank',
];

type Asked = Pick<ChangeCommand, 'request' | 'caller' | 'atLeast'> & {
  /** The kind of change for the rules; `rank` by default. */
  kind?: keyof typeof rulesFor;
  /** Set if they are known already. */
  paces?: Paces;
};

/** Checks a plan against the rules, unless the member holds the requested rank already. Throws the first refusal, unless `examiner` lists them all. */
export async function checkPlan(
  app: Ranking,
  { request, caller, atLeast, kind = 'rank', paces, ...planned }: Asked & PlannedChange,
  call: CallContext,
  examiner: Examiner = strict,
): Promise<ApprovedChange> {
  const { plan, scheme, acting } = planned;
  // a suspension begins or ends whatever roles the member holds
  const isQuiet = kind === 'rank' && plan.steps.length === 0;
  const rules = rulesFor[kind];
  const asked = { policy: policyFor(scheme, app.policy), key: caller.rules, request, scheme, plan, acting };
  const comeback = kind === 'suspension' ? comebackOf(asked, await openHold(app, request.rankeeId)) : undefined;
  const policyCase: PolicyCase = {
    ...asked,
    ...(comeback !== undefined && { comeback }),
    ...(isQuiet ? noPace : paceOf(app, paces ?? (await pacesOf(app, request)))),
  };
  if (!isQuiet) {
    for (const { name, refusal } of rules) examiner.hold(name, refusal(policyCase));
    const aboveActing = refusalAboveActing(policyCase) ?? refusalOfComeback(policyCase, refusalAboveActing);
    examiner.hold('acting account', aboveActing);
    await examiner.find(
      'ranker rank',
      () => verifyRanker(app, policyCase, call),
      (roles) =>
        roles === undefined
          ? 'not to be verified'
          : `${request.rankerId} holds ${roles.map(roleTitle).join(', ') || 'no role'}`,
    );
  }
  // A member above the ceiling stays there if the request asks for no more than a lower rank.
  return approved({ ...planned, policyCase, recheck: isQuiet && atLeast ? [] : rules });
}

/**
 * The same for a plan that restores roles. Only the rules about roles and members that may be touched apply to it.
 * Throws the refusal.
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

/** The times of the rankee's last change and of the ranker's last change (epoch milliseconds). */
export interface Paces {
  changedAt: number | undefined;
  activeAt: number | undefined;
}

/** Read only if the policy needs them. */
export async function pacesOf(
  { store, policy }: Pick<Ranking, 'store' | 'policy'>,
  { rankeeId, rankerId }: Pick<RankRequest, 'rankeeId' | 'rankerId'>,
): Promise<Paces> {
  const [changedAt, activeAt] = await Promise.all([
    policy.cooldownMs > 0 ? store.lastAppliedAt(rankeeId) : undefined,
    policy.rankerCooldownMs > 0 ? store.lastChangedSomebodyAt(rankerId) : undefined,
  ]);
  return { changedAt, activeAt };
}

function paceOf({ clock }: Pick<Ranking, 'clock'>, { changedAt, activeAt }: Paces): Pace {
  const since = (at: number | undefined) => (at === undefined ? undefined : clock.now() - at);
  return { sinceLastChangeMs: since(changedAt), sinceRankersLastChangeMs: since(activeAt) };
}

/**
 * The ranker's roles; `undefined` if the policy does not need them. This check is the last one, because a refused
 * change should not cost its call of the platform. Throws `ranker_not_allowed`.
 */
async function verifyRanker(app: Ranking, of: PolicyCase, call: CallContext): Promise<Role[] | undefined> {
  if (!mustVerifyRanker(of)) return undefined;
  const ranker = await readMember(app, of.request.rankerId, call);
  const roles = ranker && heldRoles((await app.group.schemeFor(ranker, call)).roles, ranker);
  const refusalOf = (plan: PolicyCase) => refusalOfRanker(plan, roles);
  const refusal = refusalOf(of) ?? refusalOfComeback(of, refusalOf);
  if (refusal !== undefined) throw refusal;
  return roles;
}
