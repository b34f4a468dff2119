import type { Deadline } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { refusalOfHolds } from '../../core/begin.ts';
import { successMessage } from '../../core/describe.ts';
import { idempotencyWindowMs, type RankChange } from '../../core/model.ts';
import type { CallContext } from '../../ports/index.ts';
import { openHold } from '../holds/open-hold.ts';
import { carryOutChange, type FinishedChange, recordEnded, toRankdError } from './change-member.ts';
import { type ChangeResult, draftOf, resultOf, withPlan } from './change-record.ts';
import { maxPerLane } from './member-turns.ts';
import {
  type ApprovedChange,
  checkPlan,
  type Paces,
  pacesOf,
  planChange,
  rulesKindOf,
  withCurrentReach,
} from './plan-change.ts';
import { QueuePosition } from './queue-position.ts';
import type { ChangeCommand, Ranking } from './ranking.ts';
import { writtenLast } from './read-member.ts';

export interface ChangeAnswer extends FinishedChange {
  /**
   * True if this is the outcome of an earlier request with the same idempotency key, or of an earlier run of the same
   * list. `error` is then absent.
   */
  replayed: boolean;
}

/**
 * Changes one member's rank, and returns the outcome as recorded in the history. Throws if no outcome is recorded: on
 * an idempotency conflict, if too many changes to the member are in progress, if a step, role name or suspension is
 * refused before it resolves to a target rank, if the store fails, or on an internal error.
 */
export async function changeRank(app: Ranking, command: ChangeCommand, deadline: Deadline): Promise<ChangeAnswer> {
  const [rankeeId, lane] = [command.request.rankeeId, command.caller.keyId ?? 'operator'];
  // Must precede the first `await`, so that positions follow the order of arrival.
  await using position = app.turns.isFull(rankeeId, lane) ? undefined : new QueuePosition(app, { rankeeId, lane });
  await using claim = await claimIdempotencyKey(app, command);
  if (claim.earlier !== undefined) return { change: claim.earlier, replayed: true };
  if (position === undefined) throw tooMany(rankeeId);
  const call: CallContext = { signal: deadline.signal, deadlineAt: deadline.at, lane };
  return { replayed: false, ...(await changeInTurn(app, { command, position }, call)) };
}

interface Claim extends AsyncDisposable {
  earlier?: RankChange;
}

/**
 * Claims the command's Idempotency-Key, if it has one, until the claim is disposed. Throws `idempotency_in_progress` if
 * the same request is still running, and `idempotency_mismatch` if the key was used for a different request.
 */
export async function claimIdempotencyKey(
  { store, group, clock }: Pick<Ranking, 'store' | 'group' | 'clock'>,
  { caller: { keyId }, idempotency }: Pick<ChangeCommand, 'caller' | 'idempotency'>,
): Promise<Claim> {
  if (idempotency === undefined || keyId === undefined) return claim();
  const { fingerprint } = idempotency;
  const slot = { keyId, idempotencyKey: idempotency.key, group: group.title };
  const since = clock.now() - idempotencyWindowMs;
  const state = await store.claimIdempotencyKey({ ...slot, fingerprint, since });
  // If this fails, the store releases the claim itself once it is reachable again.
  if (state.is === 'claimed') return claim(() => store.releaseIdempotencyKey(slot).catch(() => undefined));
  const known = state.is === 'running' ? state.fingerprint : state.change.fingerprint;
  if (known !== fingerprint) throw mismatch();
  if (state.is === 'running' || state.change.state === 'pending') throw inProgress();
  return { ...claim(), earlier: state.change };
}

function claim(release: () => Promise<void> = async () => undefined): Claim {
  return { [Symbol.asyncDispose]: release };
}

function inProgress(): RankdError {
  const message = 'The first request with this Idempotency-Key is still running; send it again in a moment.';
  return new RankdError('idempotency_in_progress', message, { retryAfterMs: 1_000 });
}

function mismatch(): RankdError {
  return new RankdError(
    'idempotency_mismatch',
    'This Idempotency-Key was already used for a different request; use a new one.',
  );
}

function tooMany(userId: number): RankdError {
  const message = `This caller already has ${maxPerLane} changes to member ${userId} in progress. Send the next one once one of them has finished.`;
  return new RankdError('too_many_requests', message, { retryAfterMs: 1_000 });
}

/**
 * Waits for the member's turn, then plans and carries out the change. Starts over if another node changed the member
 * first, or if the group's roles have changed.
 */
async function changeInTurn(
  app: Ranking,
  { command, position }: { command: ChangeCommand; position: QueuePosition },
  call: CallContext,
): Promise<FinishedChange & { replayed?: true }> {
  const draft = draftOf(app, command);
  const { secretId } = command.caller;
  // Until it is planned, a step, role name or suspension has no target rank to record.
  const { step, roleName, hold } = command;
  const isNumbered = step === undefined && roleName === undefined && hold?.kind !== 'suspension';
  const asked = isNumbered ? draft : undefined;
  for (;;) {
    const turn = await orRefusal(
      position.waitAndRead(call, () => readFacts(app, command)),
      call,
    );
    if ('error' in turn) return recordRefusal(app, asked, turn.error);
    const done = await findDoneByList(app, command);
    if (done !== undefined) return { change: done, replayed: true };
    const approval = await approve(app, { command, draft, asked, known: turn.value.found }, call);
    if ('result' in approval) return recordEnded(app, approval.change, approval.result);
    if ('error' in approval) return recordRefusal(app, approval.change, approval.error);
    const { change, approved } = approval;
    const intent = {
      change: withPlan(change, approved),
      approved,
      success: approval.success,
      after: turn.value.after,
      secretId,
    };
    const result = await orRefusal(carryOutChange(app, intent, call), call);
    if ('error' in result) return recordRefusal(app, change, result.error);
    if (result.value !== 'stale') return result.value;
  }
}

/**
 * Data from the history about the member and the ranker, read during the member's turn. If the data changes before this
 * change begins, `beginChange` returns `stale` or rechecks the ranker's cooldown.
 */
interface MemberFacts {
  written: RankChange | undefined;
  paces: Paces;
}

async function readFacts(app: Ranking, { request }: ChangeCommand): Promise<MemberFacts> {
  const [written, paces] = await Promise.all([writtenLast(app, request.rankeeId), pacesOf(app, request)]);
  return { written, paces };
}

async function findDoneByList(
  { store, group }: Pick<Ranking, 'store' | 'group'>,
  { list, request: { rankeeId } }: ChangeCommand,
): Promise<RankChange | undefined> {
  if (list === undefined) return undefined;
  const selection = { group: group.title, rankeeId, states: ['applied' as const] };
  const changes = await store.listChanges({ ...selection, limit: 1_000 });
  return changes.find(({ command = '' }) => command.includes(list));
}

type Approval =
  | { change: RankChange; approved: ApprovedChange; success: string }
  /** The result of a dry run. */
  | { change: RankChange; result: ChangeResult }
  | { change: RankChange | undefined; error: RankdError };

async function approve(
  app: Ranking,
  {
    command,
    draft,
    asked,
    known: { written, paces },
  }: { command: ChangeCommand; draft: RankChange; asked: RankChange | undefined; known: MemberFacts },
  call: CallContext,
): Promise<Approval> {
  let planned: RankChange | undefined;
  const plan = async () => {
    planned = undefined;
    const found = await planChange(app, { ...command, written: Promise.resolve(written) }, call);
    planned = { ...draft, newRankId: found.newRankId };
    return {
      change: planned,
      approved: await checkPlan(app, { ...command, ...found, kind: rulesKindOf(command), paces }, call),
    };
  };
  const checked = await orRefusal(withCurrentReach(app, call, plan), call);
  if ('error' in checked) return { change: planned ?? asked, error: checked.error };
  const { change, approved } = checked.value;
  const success = successMessage(draft, approved.plan);
  if (!draft.dryRun) return { change, approved, success };
  // For a real change, `beginChange` checks the holds.
  const refusal = refusalOfHolds(draft, { open: await openHold(app, draft.rankeeId) });
  if (refusal !== undefined) return { change, error: refusal };
  return {
    change: withPlan(change, approved),
    result: { outcome: { state: 'applied', code: null, message: success } },
  };
}

async function orRefusal<T>(work: Promise<T>, call: CallContext): Promise<{ value: T } | { error: RankdError }> {
  try {
    return { value: await work };
  } catch (cause) {
    return { error: toRankdError(cause, call) };
  }
}

/** Records a refusal, or throws it if the requested rank or the outcome is unknown, or if the store has failed. */
export async function recordRefusal(
  app: Ranking,
  change: RankChange | undefined,
  error: RankdError,
): Promise<FinishedChange> {
  if (change === undefined || error.code === 'store_unavailable' || error.code === 'outcome_unknown') throw error;
  return recordEnded(app, change, resultOf(error));
}
