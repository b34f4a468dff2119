import { type ErrorCode, RankdError } from '../base/errors.ts';
import { exponentialBackOff } from '../base/time.ts';
import { mayStillSucceed } from './change-codes.ts';
import { holdTitle, memberTitle, untilWhen } from './describe.ts';
import { type Actor, type DomainEvent, suspensionEvent } from './events.ts';
import type { EndedState, Hold, HoldPart, HoldState, Member, RankChange, Role, Scope } from './model.ts';
import { heldIds, isUnlisted, roleIds } from './role-scheme.ts';
import { holdsNone, steps } from './steps.ts';
import { tookEffect } from './undo.ts';

/** The member's holds that a change can affect. */
export interface HoldsOfMember {
  open?: Hold | undefined;
  /** The hold that the change's `hold` part names, in any state. */
  own?: Hold | undefined;
  /** The hold that this change ended or is ending, and that has not been reopened since. */
  ended?: Hold | undefined;
}

/**
 * Returns the `returnChangeId` of a hold that this change ends: the change's own id or, if the change is an undo that
 * restores a previous end of the hold, the id of the change that caused that end.
 */
export function endingChange({ id, hold }: Pick<RankChange, 'id' | 'hold'>): string {
  return (hold?.does === 'undo' && hold.recloses?.by) || id;
}

export const openStates: readonly HoldState[] = ['active', 'ending', 'stuck'];

/** The states of an open hold that no change is ending. */
export const restingStates = ['active', 'stuck'] as const satisfies HoldState[];

export function isResting({ state }: Pick<Hold, 'state'>): boolean {
  return restingStates.some((resting) => resting === state);
}

export function isOpenHold({ state }: Pick<Hold, 'state'>): boolean {
  return openStates.includes(state);
}

/** Returns the scope that a key needs for this change. */
export function scopeOf({ hold, kind }: Pick<RankChange, 'hold' | 'kind'>): Scope {
  if (kind !== undefined) return 'roles';
  const isSuspension = hold?.does === 'return' || (hold?.does === 'begin' && hold.kind === 'suspension');
  return isSuspension ? 'suspend' : 'rank';
}

/** Returns the refusal if the member's open hold forbids the change. */
export function refusalOfHold(
  change: Pick<RankChange, 'hold' | 'undoId' | 'kind'>,
  open: Hold | undefined,
): RankdError | undefined {
  if (open === undefined || change.undoId !== undefined) return undefined;
  const { hold, kind } = change;
  if (open.kind === 'temporary') return kind !== undefined && hold !== undefined ? alreadyTemporary(open) : undefined;
  if (hold?.does === 'begin' && hold.kind === 'suspension') return alreadySuspended(open);
  if (hold !== undefined && hold.does !== 'begin') return undefined;
  return RankdError.withoutStack('member_suspended', holdTitle(open), {
    hint: `rankd rank unsuspend ${open.rankeeId}, or add --lift to \`rankd rank set\``,
  });
}

/**
 * Returns the refusal if the caller is not allowed to end the hold. A key can end only holds that a key began and that
 * the operator has not extended.
 */
export function refusalOfLift(hold: Hold, keyId: string | undefined): RankdError | undefined {
  if (keyId === undefined || hold.keyId !== undefined) return undefined;
  const what =
    hold.kind === 'suspension'
      ? 'was suspended by the operator; only the operator can end the suspension.'
      : 'has a temporary rank from the operator; only the operator can end it.';
  return RankdError.withoutStack('suspended_by_operator', `${memberTitle(hold)} ${what}`, {
    hint: `rankd rank unsuspend ${hold.rankeeId}`,
  });
}

/**
 * Returns the refusal for a temporary extra role if the member already has a temporary rank or role. A temporary rank
 * would replace the existing hold instead.
 */
function alreadyTemporary(open: Hold): RankdError {
  return new RankdError('conflict', `${holdTitle(open)} A member can have only one temporary rank or role at a time.`, {
    hint: `leave out --for, or end it first: rankd rank unsuspend ${open.rankeeId}`,
  });
}

function alreadySuspended(open: Hold): RankdError {
  return new RankdError('already_suspended', `${memberTitle(open)} is already suspended, ${untilWhen(open)}.`, {
    hint:
      open.endsAt === undefined
        ? `rankd rank unsuspend ${open.rankeeId}`
        : `rankd suspension extend ${open.rankeeId} --for 2d`,
  });
}

/**
 * Returns the hold that an applied change began. If this hold replaced a temporary rank or role, its end restores the
 * roles from before that earlier hold.
 */
function holdBegunBy(
  change: RankChange,
  { id, kind, endsAt }: Extract<HoldPart, { does: 'begin' }>,
  { open, own }: HoldsOfMember,
): Hold {
  const { group, rankeeId, rankeeName, rankerId, rankerName, reason, by, keyId, placeId } = change;
  const earlier = open?.id === id ? undefined : open;
  return {
    ...{ id, group, kind, state: 'active', rankeeId, rankeeName, rankerId, rankerName, by },
    rolesBefore: own?.rolesBefore ?? earlier?.rolesBefore ?? change.rolesBefore,
    rolesDuring: change.rolesAfter,
    changeId: change.id,
    ...(reason !== undefined && { reason }),
    ...(keyId !== undefined && { keyId }),
    ...(placeId !== undefined && { placeId }),
    beginsAt: change.requestedAt,
    ...(endsAt !== undefined && { endsAt }),
    tries: 0,
    message: '',
  };
}

export interface HoldUpdate {
  holds: Hold[];
  events: DomainEvent[];
}

const nothing: HoldUpdate = { holds: [], events: [] };

/** The wait before rankd retries a return that was refused for a lasting reason. */
const stuckMs = 3_600_000;
const backOffMs = exponentialBackOff(5_000, 300_000);

/** Returns the holds and events to store in the same transaction as the change's current state. */
export function holdsAfter(change: RankChange, of: HoldsOfMember, now: number): HoldUpdate {
  if (change.dryRun) return nothing;
  switch (change.state) {
    case 'applied':
      return afterApplied(change, of, now);
    case 'pending':
    case 'unknown':
      return whileOpen(change, of);
    case 'refused':
    case 'failed':
      return afterRefusal(change, of, now);
  }
}

function afterApplied(change: RankChange, of: HoldsOfMember, now: number): HoldUpdate {
  const { open, own } = of;
  const { hold: part } = change;
  const actor = { by: change.by, at: now };
  if (part?.does === 'begin') {
    const begun = holdBegunBy(change, part, of);
    const replaced =
      open === undefined || open.id === begun.id ? nothing : endedByChange(open, 'superseded', change, actor);
    const events = own === undefined ? [suspensionEvent('begin', begun, actor)] : [];
    return { holds: [...replaced.holds, begun], events: [...replaced.events, ...events] };
  }
  if (part?.does === 'undo') return afterUndo(change, part, of, actor);
  if (part === undefined) {
    if (open === undefined || !tookEffect(change)) return nothing;
    if (leavesAlone(change, open)) return { holds: [carriedOver(open, change)], events: [] };
    const isLifted = open.kind === 'suspension' || change.undoOf === open.changeId;
    return endedByChange(open, isLifted ? 'lifted' : 'superseded', change, actor);
  }
  if (own === undefined) return nothing;
  if (part.does !== 'renew') return endedByChange(own, part.does === 'return' ? part.as : 'lifted', change, actor);
  // A member who leaves a Roblox group loses all roles, so the hold's end must not restore the roles from before that.
  const { awaySince: _, ...kept } = own;
  const renewed: Hold = { ...kept, state: 'active', rolesBefore: change.rolesBefore, rolesDuring: change.rolesAfter };
  return { holds: [renewed], events: [suspensionEvent('renew', renewed, actor)] };
}

/**
 * True if the hold, a temporary rank or role, continues after the change, because the change touches none of the hold's
 * roles. A rank change ends the hold, unless the hold only added one role.
 */
export function leavesAlone(
  { kind, undoOf, hold: part, rolesBefore, rolesAfter }: Pick<RankChange, ChangedRoles>,
  hold: Hold,
): boolean {
  const ofHold = steps({ from: hold.rolesBefore, to: hold.rolesDuring });
  const isOfRank = kind === undefined && (undoOf === undefined || part !== undefined);
  const isOneRole = ofHold.length === 1 && ofHold[0]?.kind === 'assign';
  if (hold.kind !== 'temporary' || (isOfRank && !isOneRole)) return false;
  const touched = new Set(ofHold.map(({ roleId }) => roleId));
  return !steps({ from: rolesBefore, to: rolesAfter }).some(({ roleId }) => touched.has(roleId));
}

type ChangedRoles = 'kind' | 'undoOf' | 'hold' | 'rolesBefore' | 'rolesAfter';

function carriedOver(hold: Hold, { rolesBefore, rolesAfter }: RankChange): Hold {
  const gained = rolesAfter.filter((id) => !rolesBefore.includes(id));
  const lost = rolesBefore.filter((id) => !rolesAfter.includes(id));
  const after = (ids: number[]) =>
    roleIds([...ids.filter((id) => !lost.includes(id)), ...gained].map((id) => ({ id })));
  return { ...hold, rolesBefore: after(hold.rolesBefore), rolesDuring: after(hold.rolesDuring) };
}

/**
 * Returns the update that restores the holds from before the undone changes: it ends the hold that those changes began
 * or reopened, then reopens the one that they ended.
 */
function afterUndo(
  change: RankChange,
  { id, reopens, ends, recloses }: Extract<HoldPart, { does: 'undo' }>,
  { open, own }: HoldsOfMember,
  actor: Actor,
): HoldUpdate {
  const by = { id: endingChange(change), message: change.message };
  const closing =
    open === undefined || (open.id === id && reopens !== undefined)
      ? nothing
      : endedByChange(open, recloses?.as ?? 'lifted', by, actor);
  if (own === undefined || isOpenHold(own) || (reopens ?? ends) === undefined) return closing;
  const restoring = ends !== undefined ? overdue(own, change, actor) : reopened(own, actor);
  return { holds: [...closing.holds, ...restoring.holds], events: [...closing.events, ...restoring.events] };
}

function reopened(hold: Hold, actor: Actor): HoldUpdate {
  const { returnChangeId: _, endedAt: _ended, nextTryAt: _next, code: _code, ...kept } = hold;
  const again: Hold = { ...kept, state: 'active', tries: 0, message: '' };
  return { holds: [again], events: [suspensionEvent('reopen', again, actor)] };
}

/**
 * Returns the update for a hold whose early end is undone after its time is up. The hold is then treated as having
 * ended normally: the undo restores the roles from before it.
 */
function overdue(hold: Hold, { message }: RankChange, actor: Actor): HoldUpdate {
  const ended: Hold = { ...hold, state: 'ended', endedAt: actor.at, message };
  return { holds: [ended], events: [suspensionEvent('end', ended, actor)] };
}

function endedByChange(
  hold: Hold,
  state: EndedState,
  by: Pick<RankChange, 'id' | 'message'>,
  actor: Actor,
): HoldUpdate {
  const { nextTryAt: _, code: _code, ...kept } = hold;
  const ended: Hold = { ...kept, state, returnChangeId: by.id, endedAt: actor.at, message: by.message };
  return { holds: [ended], events: [suspensionEvent(endEvents[state], ended, actor)] };
}

const endEvents = { ended: 'end', lifted: 'lift', superseded: 'supersede', forfeited: 'forfeit' } as const;

/** Returns the update that marks the hold as ending, because the outcome of its return is still open. */
function whileOpen({ id, hold }: RankChange, { own }: HoldsOfMember): HoldUpdate {
  if (hold?.does !== 'return' || own === undefined) return nothing;
  const { endedAt: _, ...kept } = own;
  return { holds: [{ ...kept, state: 'ending', returnChangeId: id }], events: [] };
}

function afterRefusal(change: RankChange, of: HoldsOfMember, now: number): HoldUpdate {
  const { hold: part, code, message } = change;
  const actor = { by: 'daemon', at: now };
  if (part?.does !== 'return') return afterRefutation(change, of, actor);
  const { own } = of;
  if (own === undefined || code === null) return nothing;
  const isDue = own.endsAt !== undefined && own.endsAt <= now;
  if (isDue) return postponed(own, { code, message }, actor);
  const { returnChangeId: _, ...kept } = own; // the early end did not happen, so the hold continues
  return { holds: [{ ...kept, state: 'active' }], events: [] };
}

/**
 * Returns the update that reverts a change's effects on the holds, because a later read has shown that the change had
 * no effect. The update is empty if the change was never recorded as applied.
 */
function afterRefutation(change: RankChange, { open, own, ended }: HoldsOfMember, actor: Actor): HoldUpdate {
  const closing = own === undefined ? nothing : withdrawn(change, own, actor);
  const isFree = open === undefined || closing.holds.some(({ id }) => id === open.id);
  const isOver = ended !== undefined && !isOpenHold(ended);
  const restoring = isFree && isOver ? reopened(ended, actor) : nothing;
  return { holds: [...closing.holds, ...restoring.holds], events: [...closing.events, ...restoring.events] };
}

/**
 * Returns the update that reverts the change's effect on the hold that its `hold` part names, if the change began the
 * hold or is an undo. The update is empty for any other change.
 */
function withdrawn({ id, message, hold: part }: RankChange, own: Hold, actor: Actor): HoldUpdate {
  if (part?.does === 'begin')
    return isOpenHold(own) ? endedByChange(own, 'superseded', { id, message }, actor) : nothing;
  const was = part?.does === 'undo' ? (part.reopens ?? part.ends) : undefined;
  return was === undefined || own.state === was.as
    ? nothing
    : endedByChange(own, was.as, { id: was.by, message }, actor);
}

/**
 * Returns the update that schedules a retry after a failed return. If the cause of the failure is lasting, the hold
 * becomes stuck.
 */
export function postponed(hold: Hold, why: { code: ErrorCode; message: string }, actor: Actor): HoldUpdate {
  const { returnChangeId: _, ...kept } = hold;
  const isTemporary = mayStillSucceed(why.code) || why.code === 'member_not_found';
  const waitMs = isTemporary ? backOffMs(hold.tries) : stuckMs;
  const state = isTemporary && hold.state !== 'stuck' ? 'active' : 'stuck';
  const later: Hold = { ...kept, ...why, state, tries: hold.tries + 1, nextTryAt: actor.at + waitMs };
  const isNew = state === 'stuck' && hold.state !== 'stuck';
  return { holds: [later], events: isNew ? [suspensionEvent('stuck', later, actor)] : [] };
}

export type HoldVerdict =
  /**
   * Restore `roles` (ids). `missing`: the roles from before the hold that can't be restored, because the group no
   * longer lists them. Roles that the member still holds are not missing.
   */
  | { do: 'give_back'; roles: number[]; missing: number[] }
  /** Give the hold's roles (ids) again to a member who rejoined the group without them. */
  | { do: 'renew'; roles: number[] }
  | { do: 'keep'; update: HoldUpdate };

/**
 * Decides on a hold by comparing the member's roles with those that the hold gave. `isOver`: the hold must end now.
 * `force`: if the hold is over, its end restores the roles from before it, whatever the member holds now. `givenAt`:
 * the request time of rankd's last change to the member's roles; a member who joined later has rejoined. `member`:
 * `undefined` if the user is not in the group.
 */
export function judgeHold(
  hold: Hold,
  {
    member,
    roles,
    isOver,
    givenAt = hold.beginsAt,
    force = false,
  }: { member: Member | undefined; roles: Role[]; isOver: boolean; givenAt?: number | undefined; force?: boolean },
  actor: Actor,
): HoldVerdict {
  if (member === undefined) return { do: 'keep', update: awayFromGroup(hold, isOver, actor) };
  // rankd can't restore unlisted roles, and changes to them say nothing about the hold, so it ignores them.
  const listed = (ids: number[]) => heldIds(roles, { roleIds: ids }).filter((id) => !isUnlisted(roles, id));
  const held = listed(member.roleIds).join();
  const holdsNoRole = held === listed([]).join();
  const holdsRolesDuring = held === listed(hold.rolesDuring).join();
  const since = Math.max(hold.beginsAt, givenAt) - (holdsRolesDuring ? 0 : clockMarginMs);
  const hasLeft = hold.awaySince !== undefined || hasRejoined(member, since);
  if (force || (holdsRolesDuring && !(hasLeft && holdsNoRole))) {
    if (!isOver) return { do: 'keep', update: nothing };
    const missing = hold.rolesBefore.filter((id) => isUnlisted(roles, id) && !member.roleIds.includes(id));
    return { do: 'give_back', roles: listed(hold.rolesBefore), missing };
  }
  if (hasLeft && holdsNoRole) {
    if (!isOver && hold.kind === 'suspension')
      return holdsRolesDuring ? { do: 'keep', update: nothing } : { do: 'renew', roles: listed(hold.rolesDuring) };
    return {
      do: 'keep',
      update: endedWithoutChange(
        hold,
        'forfeited',
        `${memberTitle(hold)} left the group in the meantime, so no roles are given back.`,
        actor,
      ),
    };
  }
  const message = `${memberTitle(hold)} was changed by someone else in the meantime, so nothing was given back.`;
  return { do: 'keep', update: endedWithoutChange(hold, 'superseded', message, actor) };
}

/**
 * rankd's clock, which dates holds, can be ahead of Roblox's, which dates memberships. A member without the hold's
 * roles is therefore treated as having rejoined even if the membership began up to this long before the hold or rankd's
 * last change to the member. The margin does not apply to a member who has exactly the hold's roles: one who joined
 * just before the hold would lose the roles from before it.
 */
const clockMarginMs = 60_000;

function hasRejoined({ joinedAt }: Pick<Member, 'joinedAt'>, since: number): boolean {
  return joinedAt !== undefined && joinedAt > since;
}

/**
 * True if the member left the group after the change was requested, and has rejoined since. Leaving removes all roles,
 * so a member who still holds a role that the change gives or takes has not left, even if the clocks suggest otherwise.
 */
export function hasLeftSince({ rolesBefore, rolesAfter, requestedAt }: RankChange, member: Member): boolean {
  return hasRejoined(member, requestedAt) && holdsNone({ from: rolesBefore, to: rolesAfter }, member.roleIds);
}

function awayFromGroup(hold: Hold, isOver: boolean, actor: Actor): HoldUpdate {
  const away: Hold = { ...hold, awaySince: hold.awaySince ?? actor.at };
  if (isOver) return endedWithoutChange(away, 'forfeited', `${memberTitle(hold)} is no longer in the group.`, actor);
  return hold.awaySince === undefined ? { holds: [away], events: [] } : nothing;
}

function endedWithoutChange(hold: Hold, state: EndedState, message: string, actor: Actor): HoldUpdate {
  const { nextTryAt: _, code: _code, ...kept } = hold;
  const ended: Hold = { ...kept, state, endedAt: actor.at, message };
  return { holds: [ended], events: [suspensionEvent(endEvents[state], ended, actor)] };
}

/**
 * Returns the update that changes the hold's end. Only the operator can do this; from then on, no key can end the hold.
 */
export function extended({ keyId: _, ...hold }: Hold, endsAt: number, actor: Actor): HoldUpdate {
  const after: Hold = { ...hold, endsAt };
  return { holds: [after], events: [suspensionEvent('extend', after, actor)] };
}
