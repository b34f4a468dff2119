import { type Deadline, deadlineIn } from '../base/clock.ts';
import { RankdError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { crypto } from '../base/node-modules.ts';
import { isSimulatedGroup } from '../core/group-title.ts';
import type { Key, KeyRecord, NamedRole, RankChange, RankRequest } from '../core/model.ts';
import type { RoleName } from '../core/role-scheme.ts';
import type { CallContext } from '../ports/index.ts';
import { type ChangeAnswer, changeRank } from '../usecases/change/change-rank.ts';
import { errorOf } from '../usecases/change/change-record.ts';
import type { ChangeCaller, ChangeCommand, Idempotency } from '../usecases/change/ranking.ts';
import { changeTitle } from '../usecases/history/change-document.ts';
import { admitCaller } from './callers.ts';
import { idempotencyKey } from './fields.ts';
import type { Exchange } from './route.ts';

interface AdmittedChange {
  placeId: number | undefined;
  caller: KeyRecord;
  asked: ChangeRequest;
  /**
   * The part of the request that a retry with the same Idempotency-Key must repeat. It excludes the place, because a
   * game can have several places.
   */
  content: unknown;
}

export type ChangeRequest = Pick<
  ChangeCommand,
  'request' | 'kind' | 'step' | 'stepCount' | 'roleName' | 'ifRank' | 'atLeast' | 'hold'
>;

/**
 * Admits the caller and makes the change that `read` returns. An Idempotency-Key is valid for only one `operation`.
 * Throws the error of a change that was not applied.
 */
export async function changeFor(
  exchange: Exchange,
  operation: string,
  read: (call: CallContext) => ChangeRequest | Promise<ChangeRequest>,
): Promise<{ change: RankChange; caller: KeyRecord }> {
  const { caller, placeId } = await admitCaller(exchange);
  using deadline = deadlineOf(exchange);
  const asked = await read(callIn(deadline, caller));
  const content = [operation, asked];
  return { change: await makeChange(exchange, { caller, placeId, asked, content }, deadline), caller };
}

export function deadlineOf({ app: { clock, deadlineMs }, request: { notes } }: Exchange): Deadline {
  return deadlineIn(clock, Math.max(0, notes.arrivedAt + deadlineMs - clock.monotonic()));
}

export function callIn({ signal, at: deadlineAt }: Deadline, { key }: KeyRecord): CallContext {
  return { signal, deadlineAt, lane: key.id };
}

/**
 * Makes a change, and adds its id to the response headers and its details to the log line. Throws the error of a change
 * that was not applied.
 */
export async function makeChange(
  exchange: Exchange,
  { caller, placeId, asked, content }: AdmittedChange,
  deadline: Deadline,
): Promise<RankChange> {
  const command = {
    caller: callerOf(caller, placeId),
    ...asked,
    ...idempotencyOf(exchange.request.headers['idempotency-key'], content),
  };
  return appliedChange(exchange, await changeRank(exchange.app, command, deadline));
}

/**
 * Adds a change's id to the response headers and its details to the log line. Throws the error of a change that was not
 * applied.
 */
export function appliedChange({ app, request, reply }: Exchange, answer: ChangeAnswer): RankChange {
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

/**
 * `before` is the highest role that counted for the member's rank before the change, `undefined` for an extra role;
 * `now` is the role that the change gave or, for an extra role, gave or took. Each is `undefined` if unknown.
 */
export function ranksOf({
  roleId,
  oldRoleId,
  roles = [],
}: RankChange): Record<'before' | 'now', NamedRole | undefined> {
  const named = (id: number | undefined) => roles.find((role) => role.id === id);
  return { before: named(oldRoleId), now: named(roleId) };
}

/**
 * Returns a function whose promises resolve in the order of its calls. Some key lookups take longer than others, but
 * rankd must make changes in order of arrival.
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

/**
 * Hashes a request's Idempotency-Key, if it has one, and its content. Throws `invalid_request` if the key is too long.
 */
export function idempotencyOf(given: string | string[] | undefined, content: unknown): { idempotency?: Idempotency } {
  if (given === undefined || given === '') return {};
  const { success, data: text } = idempotencyKey.safeParse(given);
  if (!success) {
    throw new RankdError('invalid_request', `Idempotency-Key must be at most ${idempotencyKey.maxLength} characters.`);
  }
  // Ignores names, because a retry can come from a different game server, which knows only the names of its own
  // players.
  const withoutNames = (name: string, value: unknown) => (/^ranke[er]Name$/.test(name) ? undefined : value);
  const fingerprint = crypto().hash('sha256', JSON.stringify(content, withoutNames));
  return { idempotency: { key: crypto().hash('sha256', text), fingerprint } };
}

/**
 * Logs a warning if this change paused its key. Changes that are then refused because of the pause cause no further
 * warning.
 */
export function warnOfPause(log: Logger, { change, error }: ChangeAnswer): void {
  if (!error?.details?.pausedNow) return;
  const { hint, details } = error;
  const { keyId = '', keyName = '', why } = details;
  const facts = { problem: 'paused key', keyId, key: keyName, changeId: change.id, why, hint };
  log.warn(facts, `key ${keyName} (${keyId}) is now paused; to resume it: rankd key resume ${keyName}`);
}

function appliedOrThrow({ change, error }: ChangeAnswer): RankChange {
  const refusal = errorOf(change, error);
  const mark = simulatedMark(change.group);
  if (refusal !== undefined) throw mark === '' ? refusal : withMark(refusal, mark);
  return { ...change, message: change.message + mark };
}

export function simulatedMark(group: string): string {
  return isSimulatedGroup(group) ? ' (simulated group)' : '';
}

function withMark({ code, message, hint, retryAfterMs, cause }: RankdError, mark: string): RankdError {
  return new RankdError(code, message + mark, { hint, retryAfterMs, cause });
}

export function withoutOmitted(
  request: {
    [Field in keyof RankRequest]: RankRequest[Field] | undefined;
  },
): RankRequest {
  const given = Object.entries(request).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as unknown as RankRequest;
}

export function anonymousRequest({
  userId,
  newRankId = 0,
  reason,
}: {
  userId: number;
  newRankId?: number;
  reason?: string | undefined;
}): RankRequest {
  return withoutOmitted({ rankeeId: userId, rankeeName: '', rankerId: 0, rankerName: '', newRankId, reason });
}

/** Converts a string of digits to a number, because rankd reads it as a rank number or a role id, never as a name. */
export function asRoleName(rank: number | string): RoleName {
  return /^\d{1,16}$/.test(String(rank)) ? Number(rank) : rank;
}
