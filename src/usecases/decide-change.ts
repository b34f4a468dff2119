import { roleTitle } from '../core/describe.ts';
import type { RankRequest } from '../core/model.ts';
import {
  type PolicyCase,
  policyRules,
  refusalAboveActing,
  refusalOfOwner,
  refusalOfUntouchable,
} from '../core/policy.ts';
import { heldRoles, type RolePlan, type RoleScheme, rolePlan } from '../core/role-plan.ts';
import { RankdError } from '../errors.ts';
import type { CallContext } from '../ports.ts';
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

/** Stops at the first refusal by throwing it. */
export const strict: Examiner = {
  find: (_name, check) => check(),
  hold: (_name, refusal) => {
    if (refusal !== undefined) throw refusal;
  },
};

/** The names of all checks, in the order in which they are made. */
export const checkNames = ['platform', 'rank', 'member', ...policyRules.map(({ name }) => name), 'acting account'];

/** Everything that can say no to a change before the first write, and the plan where nothing does. */
export async function decideChange(
  app: Ranking,
  { request, keyMaxRank }: { request: RankRequest; keyMaxRank: number | undefined },
  call: CallContext,
  examiner: Examiner = strict,
): Promise<Decision> {
  const acting = await examiner.find(
    'platform',
    () => app.group.acting(call),
    (found) =>
      found === undefined ? 'answers, but does not say who acts' : `acting as ${found.userId}, rank ${found.rank}`,
  );
  const { target } = await examiner.find(
    'rank',
    () => app.group.target(request.newRankId, call),
    (found) => `${request.newRankId} is ${roleTitle(found.target)}, role ${found.target.id}`,
  );
  const { member, scheme } = await examiner.find(
    'member',
    async () => {
      const refusal = refusalOfUntouchable(request.rankeeId, acting);
      if (refusal !== undefined) throw refusal;
      return findMember(app, request.rankeeId, call);
    },
    (found) => `holds ${heldRoles(found.scheme.roles, found.member).map(roleTitle).join(', ')}`,
  );
  const plan = rolePlan(scheme, member, target);
  if (plan.steps.length === 0) return { plan, scheme };
  const lastAppliedAt = await app.store.lastAppliedAt(request.rankeeId);
  const sinceLastChangeMs = lastAppliedAt === undefined ? undefined : app.clock.now() - lastAppliedAt;
  const policyCase: PolicyCase = { policy: app.policy, keyMaxRank, request, scheme, plan, acting, sinceLastChangeMs };
  for (const { name, refusal } of policyRules) examiner.hold(name, refusal(policyCase));
  examiner.hold('acting account', refusalAboveActing(policyCase));
  return { plan, scheme };
}

async function findMember(app: Ranking, userId: number, call: CallContext) {
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
