import type { RankChange, Role } from '../../core/model.ts';
import { isReached } from '../../core/role-plan.ts';
import { heldIds } from '../../core/role-scheme.ts';
import type { Step } from '../../core/steps.ts';
import type { CallContext } from '../../ports/index.ts';
import { carryOut, type Progress } from './carry-out.ts';
import { type ChangeResult, keepCompensating, outcomeUnknown, resultOf } from './change-outcome.ts';
import type { ApprovedChange } from './check-plan.ts';
import { fenceOf } from './fence.ts';
import type { Ranking } from './ranking.ts';
import { lagEndsAt } from './read-member.ts';

type Applying = Pick<Ranking, 'store' | 'platform' | 'clock' | 'recentWrites' | 'trust'>;

type Refused = Extract<Progress, { kind: 'refused' }>;

/**
 * Carries out a change whose intent is stored. If it is refused half-way, it is reverted. If it can't be confirmed, it
 * becomes unknown.
 */
export async function applyChange(
  app: Applying,
  { change, approved: { plan, scheme }, success }: { change: RankChange; approved: ApprovedChange; success: string },
  call: CallContext,
): Promise<ChangeResult> {
  const { rankeeId: userId } = change;
  const fenced = { ...call, fence: fenceOf(app, change) };
  const { roles } = scheme;
  const run = {
    userId,
    roles,
    before: plan.goal.from,
    steps: plan.steps,
    readsReliableFrom: () => lagEndsAt(app, userId),
  };
  const progress = await carryOut(app, run, fenced);
  switch (progress.kind) {
    case 'done': {
      const seen = { userId, roleIds: progress.seen };
      // If a moderator gave a higher role in between, the member does not have the new rank as the highest one.
      if (!isReached(scheme, change, seen)) return resultOf(outcomeUnknown());
      const rolesAfter = heldIds(scheme.roles, seen);
      return { outcome: { state: 'applied', code: null, message: success, rolesAfter } };
    }
    case 'unknown':
      return resultOf(progress.error);
    case 'refused':
      return compensate(app, { change, roles, ...progress }, fenced);
  }
}

/**
 * Reverts the steps that took effect before the refusal. The refusal is the outcome once reads show that all of them
 * are reverted. A role whose removal was refused is given first: it may be gone nevertheless, because the read that
 * showed it may have been stale.
 */
async function compensate(
  app: Applying,
  { change, roles, done, step, seen, error, isInDoubt = false }: Refused & { change: RankChange; roles: Role[] },
  call: CallContext,
): Promise<ChangeResult> {
  if (done.length === 0) return { ...resultOf(error), isInDoubt };
  await keepCompensating(app, change.id, error);
  const undone = new Set([...done, ...(step.kind === 'unassign' ? [step] : [])]); // a lost role was given twice
  const steps = [...undone].map(inverse).reverse();
  // until then, a stale read from before the change may look like a reverted one
  const lagEnd = app.clock.monotonic() + app.platform.readLagMs;
  const run = { userId: change.rankeeId, roles, before: seen, steps, readsReliableFrom: async () => lagEnd };
  const progress = await carryOut(app, run, call);
  return resultOf(progress.kind === 'done' ? error : outcomeUnknown(progress.error));
}

function inverse({ kind, roleId }: Step): Step {
  return { kind: kind === 'assign' ? 'unassign' : 'assign', roleId };
}
