import type { RankdError } from '../../base/errors.ts';
import type { RankChange } from '../../core/model.ts';
import { isReached } from '../../core/role-plan.ts';
import { heldRoles, type RoleScheme, roleIds } from '../../core/role-scheme.ts';
import type { Step } from '../../core/steps.ts';
import type { CallContext } from '../../ports/index.ts';
import { carryOut } from './carry-out.ts';
import { type Ending, endingOf, outcomeUnknown } from './change-outcome.ts';
import type { Ranking } from './ranking.ts';
import { lagEndsAt } from './read-member.ts';

/** A change that is decided: what to write, and what the caller is told then. */
export interface Intent {
  change: RankChange;
  steps: Step[];
  scheme: RoleScheme;
  success: string;
}

/** Carries out a change whose intent is kept. A refusal half-way is put back; what can't be confirmed is unknown. */
export async function applyChange(
  app: Pick<Ranking, 'store' | 'platform' | 'clock' | 'written'>,
  { change, steps, scheme, success }: Intent,
  call: CallContext,
): Promise<Ending> {
  const { rankeeId: userId } = change;
  const readsReliableFrom = () => lagEndsAt(app, userId);
  const progress = await carryOut(app, { userId, steps, readsReliableFrom }, call);
  switch (progress.kind) {
    case 'done': {
      const seen = { userId, roleIds: progress.seen };
      // Somebody else may have given a higher role in between: then the member is not seen to hold the new rank.
      if (!isReached(scheme, change, seen)) return endingOf(outcomeUnknown());
      const rolesAfter = roleIds(heldRoles(scheme.roles, seen));
      return { outcome: { state: 'applied', code: null, message: success, rolesAfter } };
    }
    case 'unknown':
      return endingOf(progress.error);
    case 'refused':
      return putBack(app, { change, done: progress.done, error: progress.error }, call);
  }
}

/** Undoes the steps that took effect before the refusal; the refusal is the outcome once all of them are seen undone. */
async function putBack(
  app: Pick<Ranking, 'store' | 'platform' | 'clock'>,
  { change, done, error }: { change: RankChange; done: Step[]; error: RankdError },
  call: CallContext,
): Promise<Ending> {
  if (done.length === 0) return endingOf(error);
  await app.store.markRollBack(change.id, { code: error.code, message: error.message });
  const back = done.map(inverse).reverse();
  const lagEnd = app.clock.monotonic() + app.platform.readLagMs; // until then, reads may show how it was before: as if put back
  const progress = await carryOut(
    app,
    { userId: change.rankeeId, steps: back, readsReliableFrom: async () => lagEnd },
    call,
  );
  return endingOf(progress.kind === 'done' ? error : outcomeUnknown(progress.error));
}

function inverse({ kind, roleId }: Step): Step {
  return { kind: kind === 'assign' ? 'unassign' : 'assign', roleId };
}
