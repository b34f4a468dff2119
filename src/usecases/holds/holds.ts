import { RankdError } from '../../base/errors.ts';
import { durationText } from '../../base/time.ts';
import { memberTitle } from '../../core/describe.ts';
import { extended, isOpenHold, openStates, refusalOfLift } from '../../core/holds.ts';
import type { Hold } from '../../core/model.ts';
import type { CallContext } from '../../ports/index.ts';
import { claimIdempotencyKey } from '../change/change-rank.ts';
import type { ChangeCaller, Idempotency, Ranking } from '../change/ranking.ts';
import { type CheckedHold, checkHold, dryRunHold, type HoldRequester } from './end-hold.ts';
import { openHold } from './open-hold.ts';

type HoldContext = Pick<Ranking, 'store' | 'group'>;

/** Lists the group's holds, newest first. With `isAll`, includes those that have ended. */
export function listHolds(
  { store, group }: HoldContext,
  { isAll, limit }: { isAll: boolean; limit: number },
): Promise<Hold[]> {
  return store.listHolds({ group: group.title, limit, ...(!isAll && { states: openStates }) });
}

/** Returns the hold with this id (a string), or the newest hold of this user (a number). Throws `not_found`. */
export async function requireHold({ store, group }: HoldContext, asked: string | number): Promise<Hold> {
  const found =
    typeof asked === 'string'
      ? await store.findHold(asked)
      : (await store.listHolds({ group: group.title, rankeeId: asked, limit: 1 }))[0];
  if (found !== undefined) return found;
  const what = typeof asked === 'string' ? asked : `of user ${asked}`;
  throw new RankdError('not_found', `There is no suspension ${what}.`, { hint: 'rankd suspension list --all' });
}

export interface LiftCommand {
  rankeeId: number;
  caller: ChangeCaller;
  /** If true, restores the previous roles regardless of the roles that the member holds now. */
  force: boolean;
  reason?: string | undefined;
  /** The requester that a game or a Discord command names. */
  asked?: HoldRequester;
  idempotency?: Idempotency;
}

export interface LiftedHold extends Required<CheckedHold> {
  /** True if this is the outcome of an earlier request with the same idempotency key. */
  replayed: boolean;
}

/**
 * Ends a member's hold early and restores the previous roles. Throws `not_suspended`, `suspended_by_operator`,
 * `conflict` if someone else has changed the member, `member_not_found` if the member has left, and the same errors as
 * `checkHold`.
 */
export async function liftHold(app: Ranking, command: LiftCommand, call?: CallContext): Promise<LiftedHold> {
  await using claim = await claimIdempotencyKey(app, command);
  const { earlier } = claim;
  if (earlier?.hold !== undefined)
    return { finished: { change: earlier }, hold: await requireHold(app, earlier.hold.id), replayed: true };
  return { ...(await lift(app, command, call)), replayed: false };
}

async function lift(
  app: Ranking,
  { rankeeId, caller, force, reason, asked, idempotency }: LiftCommand,
  call?: CallContext,
): Promise<Required<CheckedHold>> {
  const hold = await holdToLift(app, { rankeeId, caller, force });
  const checked = await checkHold(app, { hold, caller, as: 'lifted', force, reason, asked, idempotency }, call);
  const { finished } = checked;
  if (finished === undefined) throw refusalOf(checked.hold, caller);
  return { ...checked, finished };
}

/**
 * Returns the message that `liftHold` would record, or throws the same error, without changing or recording anything.
 */
export async function dryRunLift(
  app: Ranking,
  command: Pick<LiftCommand, 'rankeeId' | 'caller' | 'force'>,
  call: CallContext,
): Promise<string> {
  const { caller, force } = command;
  const hold = await holdToLift(app, command);
  const result = await dryRunHold(app, { hold, caller, as: 'lifted', force }, call);
  if ('hold' in result) throw refusalOf(result.hold, caller);
  return result.message;
}

async function holdToLift(
  app: Ranking,
  { rankeeId, caller, force }: Pick<LiftCommand, 'rankeeId' | 'caller' | 'force'>,
): Promise<Hold> {
  const hold = (await openHold(app, rankeeId)) ?? (force ? await endedWithoutReturn(app, rankeeId) : undefined);
  if (hold === undefined) throw notSuspended(rankeeId);
  const refusal = refusalOfLift(hold, caller.keyId);
  if (refusal !== undefined) throw refusal;
  return hold;
}

function notSuspended(rankeeId: number): RankdError {
  return new RankdError('not_suspended', `User ${rankeeId} is not suspended.`, { hint: 'rankd suspension list' });
}

async function endedWithoutReturn({ store, group }: HoldContext, rankeeId: number): Promise<Hold | undefined> {
  const [newest] = await store.listHolds({ group: group.title, rankeeId, limit: 1 });
  return newest?.state === 'superseded' || newest?.state === 'forfeited' ? newest : undefined;
}

function refusalOf(hold: Hold, { keyId }: ChangeCaller): RankdError {
  if (hold.state === 'superseded' && keyId !== undefined) return new RankdError('not_suspended', hold.message);
  if (hold.state === 'superseded')
    return new RankdError('conflict', hold.message, {
      hint: `to give back the previous roles anyway: rankd rank unsuspend ${hold.rankeeId} --force`,
    });
  if (isOpenHold(hold) || hold.state === 'forfeited')
    return new RankdError('member_not_found', hold.message || `${memberTitle(hold)} is not in the group.`);
  const what = hold.kind === 'suspension' ? 'is no longer suspended' : 'no longer has a temporary rank or role';
  return new RankdError('not_suspended', `${memberTitle(hold)} ${what}.`);
}

/**
 * Moves the end of a member's hold by `forMs`, or to `endsAt`. Throws `not_suspended`, `conflict` if the hold is
 * already ending, and `usage` if it has no end date or the new end is not allowed.
 */
export async function extendHold(
  app: Ranking,
  { rankeeId, by, ...until }: { rankeeId: number; by: string } & ({ forMs: number } | { endsAt: number }),
): Promise<Hold> {
  const hold = await openHold(app, rankeeId);
  if (hold === undefined) throw notSuspended(rankeeId);
  if (hold.endsAt === undefined) {
    const what = hold.kind === 'suspension' ? 'is suspended' : 'has a temporary rank or role';
    throw new RankdError('usage', `${memberTitle(hold)} ${what} without an end date.`, {
      hint: `to end it: rankd rank unsuspend ${rankeeId}`,
    });
  }
  const endsAt = 'endsAt' in until ? until.endsAt : hold.endsAt + until.forMs;
  requireLength(app, endsAt - app.clock.now());
  const stored = await app.store.updateHold(hold.id, (now) => extended(now, endsAt, { by, at: app.clock.now() }));
  if (stored !== undefined) return stored;
  throw new RankdError('conflict', `${memberTitle(hold)} is getting the previous roles back right now.`, {
    hint: 'run the command again in a minute',
  });
}

/** Throws an error with `code` if the hold would be too short, or longer than the policy allows. */
export function requireLength(
  { suspension }: Pick<Ranking, 'suspension'>,
  ms: number,
  code: 'usage' | 'invalid_request' = 'usage',
): void {
  if (ms < minMs)
    throw new RankdError(code, 'The duration must be at least one minute.', {
      hint: 'give a duration such as 3d, 12h or 30m',
    });
  if (ms <= suspension.maxMs) return;
  throw new RankdError(code, `The duration can be at most ${durationText(suspension.maxMs)} (policy.suspension.max).`, {
    hint: 'give a shorter duration',
  });
}

const minMs = 60_000;
