import { RankdError } from '../../base/errors.ts';
import { refusalAboveActing, refusalOfOwner, refusalOfUntouchable, standingWords } from '../../core/acting-account.ts';
import { roleTitle } from '../../core/describe.ts';
import type { ActingAccount, Direction, KeyRules, RankRequest, Role } from '../../core/model.ts';
import { nextRole } from '../../core/next-role.ts';
import { policyRules } from '../../core/policy.ts';
import { type RolePlan, rolePlan } from '../../core/role-plan.ts';
import { heldRoles, nameForRequest, type RoleScheme } from '../../core/role-scheme.ts';
import { mustVerifyRanker, refusalOfRanker } from '../../core/rules/rankers.ts';
import type { PolicyCase } from '../../core/rules/rule.ts';
import type { CallContext } from '../../ports/index.ts';
import type { Ranking } from './ranking.ts';
import { readMember } from './read-member.ts';

/** Makes the checks: a real change stops at the first refusal, a dry run lists them all. */
export interface Examiner {
  /** A check that finds out something the later ones need. Throws its refusal. */
  find<T>(name: string, check: () => Promise<T>, describe: (found: T) => string): Promise<T>;
  /** A check that only says yes (`undefined`) or no. */
  hold(name: string, refusal: RankdError | undefined): void;
}

export interface Decision {
  plan: RolePlan;
  scheme: RoleScheme;
}

/** A plan that the rules have not been asked about yet. */
export interface Proposal extends Decision {
  /** Of the request, or what a step comes to. */
  newRankId: number;
  acting: ActingAccount | undefined;
}

/** Stops at the first refusal by throwing it. */
export const strict: Examiner = {
  find: (_name, check) => check(),
  hold: (_name, refusal) => {
    if (refusal !== undefined) throw refusal;
  },
};

/** The names of all checks, in the order in which they are made. */
export const checkNames = [
  'platform',
  'rank',
  'member',
  ...policyRules.map(({ name }) => name),
  'acting account',
  'ranker rank',
];

export interface Question {
  request: RankRequest;
  /** To the next rank up or down, instead of `newRankId`. */
  step?: Direction;
  /** How the key narrows the policy; `undefined`: the operator asks. */
  key: KeyRules | undefined;
}

/** Everything that can say no to a change before the first write, and the plan where nothing does. */
export async function decideChange(
  app: Ranking,
  question: Question,
  call: CallContext,
  examiner: Examiner,
): Promise<Decision> {
  const proposal = await planChange(app, question, call, examiner);
  await checkPlan(app, { ...question, ...proposal }, call, examiner);
  return proposal;
}

/** How the member, as read now, gets to the rank that is asked for. */
export async function planChange(
  app: Ranking,
  { request, step }: Question,
  call: CallContext,
  examiner: Examiner = strict,
): Promise<Proposal> {
  const acting = await examiner.find(
    'platform',
    async () => {
      const found = await app.group.acting(call);
      await app.group.scheme(call); // who acts may stay unknown; without the roles there is no going on
      return found;
    },
    (found) =>
      found === undefined ? 'answers, but does not say who acts' : `acting as ${found.userId}, ${standingWords(found)}`,
  );
  const asked =
    step ??
    (await examiner.find(
      'rank',
      async () => (await app.group.target(request.newRankId, call)).target,
      (found) => `${request.newRankId} is ${roleTitle(found)}, role ${found.id}`,
    ));
  const { member, scheme } = await examiner.find(
    'member',
    async () => {
      const refusal = refusalOfUntouchable(request.rankeeId, acting);
      if (refusal !== undefined) throw refusal;
      return findMember(app, request.rankeeId, call);
    },
    (found) => `holds ${heldRoles(found.scheme.roles, found.member).map(roleTitle).join(', ')}`,
  );
  const target = typeof asked === 'string' ? nextRole(scheme, member, asked, app.policy.lockedRoles) : asked;
  const newRankId = step === undefined ? request.newRankId : nameForRequest(scheme, target);
  return { plan: rolePlan(scheme, member, target), scheme, newRankId, acting };
}

/** Holds a plan against the rules, where there is something to write. */
export async function checkPlan(
  app: Ranking,
  { request, key, plan, scheme, acting }: Question & Proposal,
  call: CallContext,
  examiner: Examiner = strict,
): Promise<void> {
  if (plan.steps.length === 0) return;
  const policyCase: PolicyCase = {
    policy: app.policy,
    key,
    request,
    scheme,
    plan,
    acting,
    ...(await pace(app, request)),
  };
  for (const { name, refusal } of policyRules) examiner.hold(name, refusal(policyCase));
  examiner.hold('acting account', refusalAboveActing(policyCase));
  await examiner.find(
    'ranker rank',
    () => verifyRanker(app, policyCase, call),
    (roles) =>
      roles === undefined
        ? 'not to be verified'
        : `${request.rankerId} holds ${roles.map(roleTitle).join(', ') || 'no role'}`,
  );
}

/** How long ago the rankee was changed, and the ranker changed anybody; asked only where it matters. */
async function pace(
  { store, clock, policy }: Ranking,
  { rankeeId, rankerId }: RankRequest,
): Promise<Pick<PolicyCase, 'sinceLastChangeMs' | 'sinceRankersLastChangeMs'>> {
  const since = (at: number | undefined) => (at === undefined ? undefined : clock.now() - at);
  const changedAt = policy.cooldownMs > 0 ? await store.lastAppliedAt(rankeeId) : undefined;
  const activeAt = policy.rankerCooldownMs > 0 ? await store.lastChangedSomebodyAt(rankerId) : undefined;
  return { sinceLastChangeMs: since(changedAt), sinceRankersLastChangeMs: since(activeAt) };
}

/**
 * The roles that the ranker holds; `undefined` where nobody asks. The last of all checks: it is a call of the platform, which
 * a change that is refused anyway must not cost. Throws `ranker_not_allowed`.
 */
async function verifyRanker(app: Ranking, of: PolicyCase, call: CallContext): Promise<Role[] | undefined> {
  if (!mustVerifyRanker(of)) return undefined;
  const ranker = await readMember(app, of.request.rankerId, call);
  const roles = ranker && heldRoles((await app.group.schemeFor(ranker, call)).roles, ranker);
  const refusal = refusalOfRanker(of, roles);
  if (refusal !== undefined) throw refusal;
  return roles;
}

/** The member and the scheme that knows every role held. Throws `member_not_found`, and `above_acting_account` for the owner. */
export async function findMember(app: Ranking, userId: number, call: CallContext) {
  const member = await readMember(app, userId, call);
  if (member !== undefined) {
    const scheme = await app.group.schemeFor(member, call);
    if (heldRoles(scheme.roles, member).some(({ kind }) => kind === 'owner')) throw refusalOfOwner(userId);
    return { member, scheme };
  }
  throw new RankdError('member_not_found', `User ${userId} is not a member of the group.`, {
    hint: 'check the user id; the user has to join the group first',
  });
}
