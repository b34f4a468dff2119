import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Deadline, deadlineIn } from '../base/clock.ts';
import { RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { crypto } from '../base/node-modules.ts';
import { isSimulatedGroup } from '../core/group-title.ts';
import type { Key, KeyRecord, NamedRole, RankChange } from '../core/model.ts';
import type { CallContext } from '../ports/index.ts';
import type { ChangeCaller, ChangeCommand, Idempotency } from '../usecases/change/change-command.ts';
import { errorOf } from '../usecases/change/change-outcome.ts';
import { type ChangeAnswer, changeRank } from '../usecases/change/change-rank.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { changeTitle } from '../usecases/documents/change.ts';
import { type Edge, letIn } from './edge.ts';
import { idempotencyKey } from './rank-request.ts';

/** A change that a request asks for, once its caller is let in. */
export interface AskedChange {
  request: FastifyRequest;
  reply: FastifyReply;
  caller: KeyRecord;
  placeId: number | undefined;
  asked: Pick<ChangeCommand, 'request' | 'step' | 'stepCount' | 'roleName' | 'hold'>;
  /** What a repeat with the same Idempotency-Key has to ask for as well. */
  content: unknown;
}

/** A request for a change, and how its route reads it. */
export interface ChangeRoute {
  request: FastifyRequest;
  reply: FastifyReply;
  /** Names the operation: one Idempotency-Key is good for one of them. */
  operation: string;
  /** Where the key stands. */
  secret?: (request: FastifyRequest) => string | undefined;
  /** What the request asks for. It is called once the caller is let in. */
  read: (app: DaemonContext, call: CallContext) => AskedChange['asked'] | Promise<AskedChange['asked']>;
}

/** Lets the caller in, and makes the change. Throws why it is not applied. */
export async function changeFor(
  edge: Edge,
  { request, reply, operation, secret, read }: ChangeRoute,
): Promise<{ change: RankChange; caller: KeyRecord }> {
  const app = edge.live.current; // for all of this change, whatever configuration is applied meanwhile
  const { caller, placeId } = await letIn(app, edge, { request, reply, scope: 'rank', ...(secret && { secret }) });
  using deadline = deadlineOf(app, request);
  const asked = await read(app, callIn(deadline, caller));
  const content = [operation, placeId, asked];
  return { change: await makeChange(app, { request, reply, caller, placeId, asked, content }, deadline), caller };
}

/** By when the request has to be answered. */
export function deadlineOf({ clock, deadlineMs }: DaemonContext, { notes }: FastifyRequest): Deadline {
  return deadlineIn(clock, Math.max(0, notes.arrivedAt + deadlineMs - clock.monotonic()));
}

/** The bounds of calls of the platform for this caller. */
export function callIn({ signal, at: deadlineAt }: Deadline, { key }: KeyRecord): CallContext {
  return { signal, deadlineAt, lane: key.id };
}

/** Makes the change that a request asks for, and notes it for answer and log. Throws why it is not applied. */
export async function makeChange(
  app: DaemonContext,
  { request, reply, caller, placeId, asked, content }: AskedChange,
  deadline: Deadline,
): Promise<RankChange> {
  const command = {
    caller: callerOf(caller, placeId),
    ...asked,
    ...idempotencyOf(request.headers['idempotency-key'], content),
  };
  const answer = await changeRank(app, command, deadline);
  return answered(app, { request, reply }, answer);
}

/** Notes a change for answer and log. Throws why it is not applied. */
export function answered(
  app: DaemonContext,
  { request, reply }: Pick<AskedChange, 'request' | 'reply'>,
  answer: ChangeAnswer,
): RankChange {
  warnOfPause(app.log, answer);
  request.notes.facts = {
    ...request.notes.facts,
    changeId: answer.change.id,
    rankeeId: answer.change.rankeeId,
    change: changeTitle(answer.change),
  };
  reply.header('x-rank-change', answer.change.id);
  if (answer.replayed) reply.header('idempotent-replayed', 'true');
  return appliedOrThrow(answer);
}

/** The highest role before a change and after it, of those that count; `undefined` if that is not known. */
export function ranksOf({
  roleId,
  oldRoleId,
  roles = [],
}: RankChange): Record<'before' | 'now', NamedRole | undefined> {
  const named = (id: number | undefined) => roles.find((role) => role.id === id);
  return { before: named(oldRoleId), now: named(roleId) };
}

/**
 * Hands values on in the order in which they were asked for, even if a later one is there first: members are changed in order
 * of arrival, and the look-up of one key can take longer than that of the next.
 */
export function inOrder<Value>(): (value: Value | Promise<Value>) => Promise<Value> {
  let earlier: Promise<unknown> = Promise.resolve();
  return (value) => {
    const mine = Promise.allSettled([earlier, value]).then(() => value);
    earlier = mine;
    return mine;
  };
}

export function callerOf({ key, secretId }: { key: Key; secretId: string }, placeId: number | undefined): ChangeCaller {
  return {
    by: `key:${key.id}`,
    keyId: key.id,
    ...(placeId !== undefined && { placeId }),
    secretId,
    dryRun: key.mode === 'test',
    rules: key,
  };
}

/** The Idempotency-Key of a request, and what a repeat with it has to ask for as well. Throws `invalid_request`. */
export function idempotencyOf(given: string | string[] | undefined, content: unknown): { idempotency?: Idempotency } {
  if (given === undefined || given === '') return {};
  const { success, data: text } = idempotencyKey.safeParse(given);
  if (!success) {
    throw new RankdError('invalid_request', `Idempotency-Key must be at most ${idempotencyKey.maxLength} characters.`);
  }
  const fingerprint = crypto().hash('sha256', JSON.stringify(content));
  return { idempotency: { key: crypto().hash('sha256', text), fingerprint } };
}

/** Warns of the one change that paused its key. The changes that the pause then stopped are in the history. */
function warnOfPause(log: Logger, { change, error }: ChangeAnswer): void {
  if (!error?.details?.pausedNow) return;
  const { hint, details } = error;
  const { keyId = '', keyName = '', why } = details;
  const facts = { problem: 'paused key', keyId, key: keyName, changeId: change.id, why, hint };
  log.warn(facts, `key ${keyName} (${keyId}) is now paused; to lift that: rankd key resume ${keyName}`);
}

function appliedOrThrow({ change, error }: ChangeAnswer): RankChange {
  const refusal = errorOf(change, error);
  const mark = isSimulatedGroup(change.group) ? ' (simulated group)' : '';
  if (refusal !== undefined) throw mark === '' ? refusal : withMark(refusal, mark);
  return { ...change, message: change.message + mark };
}

function withMark({ code, message, hint, retryAfterMs, cause }: RankdError, mark: string): RankdError {
  return new RankdError(code, message + mark, { hint, retryAfterMs, cause });
}
