import { RankdError } from '../base/errors.ts';
import { isoTime } from '../base/time.ts';
import { memberTitle, untilWhen } from './describe.ts';
import { endingChange, isOpenHold, leavesAlone } from './holds.ts';
import type { EndedState, Hold, HoldEnd, HoldPart, RankChange, Role } from './model.ts';

/** An undo's result for the member: the roles (ids) to restore, and the changes to the holds. */
export interface RestoredHolds {
  roles: number[];
  part: HoldPart | undefined;
  /** True if the undo reopens or ends a hold, and so has an effect even if the member already has the roles. */
  changesHolds: boolean;
  /** A sentence about the reopened or overdue hold, to append to the message; empty if there is none. */
  sentence: string;
}

/**
 * Returns the roles and holds from before `earliest`, the oldest undone change, or a refusal if they can't be restored.
 * `holds` contains all of the member's recorded holds.
 */
export function holdsBefore(
  earliest: RankChange,
  { holds, roles, now }: { holds: readonly Hold[]; roles: readonly Role[]; now: number },
): RestoredHolds | RankdError {
  const { hold: part } = earliest;
  if (part?.does === 'renew') return asRenewed(earliest);
  const endedBy = endingChange(earliest);
  const endedHold = holds.find((hold) => hold.returnChangeId === endedBy && !isOpenHold(hold));
  if ((part?.does === 'return' || part?.does === 'lift') && endedHold === undefined) return holdGone(earliest);
  const missing = endedHold?.rolesDuring.find((id) => !roles.some((role) => role.id === id));
  const isDue = endedHold?.endsAt !== undefined && endedHold.endsAt <= now;
  if (endedHold !== undefined && missing !== undefined && !isDue) return lacksRole(endedHold, missing);
  const held = holds.find(isOpenHold);
  const continues =
    held !== undefined &&
    endedHold === undefined &&
    part === undefined &&
    held.beginsAt < earliest.requestedAt && // a later hold did not exist before the undone changes
    leavesAlone({ ...earliest, rolesBefore: held.rolesDuring, rolesAfter: earliest.rolesBefore }, held);
  const open = continues ? undefined : held;
  const wasReopened = part?.does === 'undo' && part.reopens !== undefined && part.id === open?.id;
  const end = endedHold && { as: endedHold.state as EndedState, by: endedBy };
  const id = endedHold?.id ?? open?.id;
  return {
    roles: isDue ? endedHold.rolesBefore : earliest.rolesBefore,
    part:
      id === undefined
        ? undefined
        : {
            does: 'undo',
            id,
            ...(end !== undefined && { [isDue ? 'ends' : 'reopens']: end }),
            ...(wasReopened && { recloses: part.reopens as HoldEnd }),
          },
    changesHolds: open !== undefined || (endedHold !== undefined && !isDue),
    sentence: endedHold === undefined ? '' : ` ${describeHold(endedHold, isDue)}`,
  };
}

function describeHold(hold: Hold, isDue: boolean): string {
  const what = hold.kind === 'suspension' ? 'suspension' : 'temporary rank';
  if (isDue) return `These are the roles from before the ${what} that ended at ${isoTime(hold.endsAt ?? 0)}.`;
  return `The ${what} is in force again, ${untilWhen(hold)}.`;
}

function asRenewed(change: RankChange): RankdError {
  return new RankdError(
    'member_suspended',
    `${memberTitle(change)} left the group and came back while suspended. If change ${change.id} were undone, rankd would suspend the member again.`,
    { hint: `to end the suspension: rankd rank unsuspend ${change.rankeeId}` },
  );
}

function holdGone(change: RankChange): RankdError {
  return new RankdError(
    'not_found',
    `Change ${change.id} ended a suspension of ${memberTitle(change)} that is no longer recorded, so it can't be restored.`,
    { hint: `rankd rank suspend ${change.rankeeId} --for 3d` },
  );
}

function lacksRole(hold: Hold, roleId: number): RankdError {
  return new RankdError(
    'unknown_rank',
    `${memberTitle(hold)} temporarily held role ${roleId}, which the group no longer has, so it can't be given again.`,
    { hint: `rankd suspension show ${hold.id}` },
  );
}
