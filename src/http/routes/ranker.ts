import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { deadlineIn } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { crypto } from '../../base/node-modules.ts';
import { isSimulatedGroup } from '../../core/group-title.ts';
import type { Key, KeyRecord, RankRequest } from '../../core/model.ts';
import type { ChangeCaller, Idempotency } from '../../usecases/change/change-command.ts';
import { errorOf } from '../../usecases/change/change-outcome.ts';
import { type ChangeAnswer, changeRank } from '../../usecases/change/change-rank.ts';
import type { LiveContext } from '../../usecases/daemon-context.ts';
import type { rankAnswer } from '../answers.ts';
import { authenticateRequest } from '../authenticate.ts';
import { authorize } from '../authorize.ts';
import { sendError } from '../errors.ts';
import { parsePlaceId } from '../ids.ts';
import { idempotencyKey, parseRankRequest } from '../rank-request.ts';
import { jsonBody } from '../request-body.ts';
import type { Throttle } from '../throttle.ts';

/** POST /v1/ranker?placeid=…: changes one member's rank. Answers 200 only if the platform was seen to hold the new rank. */
export function rankerRoute(server: FastifyInstance, live: LiveContext, throttle: Throttle): void {
  const inOrderOfArrival = inOrder<KeyRecord | RankdError>();
  server.post('/v1/ranker', async (request, reply) => {
    const app = live.current; // for all of this change, whatever configuration is applied meanwhile
    const placeId = parsePlaceId(request.query, 'query');
    const keyRecord = await inOrderOfArrival(authenticateRequest(app, request, placeId));
    const caller = authorize(app, { request, reply, throttle, keyRecord, placeId, scope: 'rank' });
    if (caller instanceof RankdError) return sendError({ error: caller, request, reply });
    const { key, secretId } = caller;
    const rankRequest = parseRankRequest(jsonBody(request));
    const command = {
      caller: { ...callerOf(key, placeId), secretId },
      request: rankRequest,
      ...idempotencyOf(request.headers['idempotency-key'], placeId, rankRequest),
    };
    using deadline = deadlineIn(
      app.clock,
      Math.max(0, request.notes.arrivedAt + app.deadlineMs - app.clock.monotonic()),
    );
    const answer = await changeRank(app, command, deadline);
    warnOfPause(app.log, answer);
    request.notes.facts = { ...request.notes.facts, changeId: answer.change.id, rankeeId: rankRequest.rankeeId };
    reply.header('x-rank-change', answer.change.id);
    if (answer.replayed) reply.header('idempotent-replayed', 'true');
    return reply.send(successOrThrow(answer));
  });
}

/**
 * Hands values on in the order in which they were asked for, even if a later one is there first: members are changed in order
 * of arrival, and the look-up of one key can take longer than that of the next.
 */
function inOrder<Value>(): (value: Value | Promise<Value>) => Promise<Value> {
  let earlier: Promise<unknown> = Promise.resolve();
  return (value) => {
    const mine = Promise.allSettled([earlier, value]).then(() => value);
    earlier = mine;
    return mine;
  };
}

function callerOf(key: Key, placeId: number): ChangeCaller {
  return {
    by: `key:${key.id}`,
    keyId: key.id,
    placeId,
    dryRun: key.mode === 'test',
    rules: key,
  };
}

function idempotencyOf(
  given: string | string[] | undefined,
  placeId: number,
  request: RankRequest,
): { idempotency?: Idempotency } {
  if (given === undefined || given === '') return {};
  const { success, data: text } = idempotencyKey.safeParse(given);
  if (!success) {
    throw new RankdError('invalid_request', `Idempotency-Key must be at most ${idempotencyKey.maxLength} characters.`);
  }
  return {
    idempotency: {
      key: crypto().hash('sha256', text),
      fingerprint: crypto().hash('sha256', JSON.stringify([placeId, request])),
    },
  };
}

/** Warns of the one change that paused its key. The changes that the pause then stopped are in the history. */
function warnOfPause(log: Logger, { change, error }: ChangeAnswer): void {
  if (!error?.details?.pausedNow) return;
  const { details, hint } = error;
  log.warn({ keyId: change.keyId, changeId: change.id, reason: details.why, hint }, 'a key is now paused');
}

function successOrThrow({ change, error }: ChangeAnswer): z.infer<typeof rankAnswer> {
  const refusal = errorOf(change, error);
  const mark = isSimulatedGroup(change.group) ? ' (simulated group)' : '';
  if (refusal !== undefined) throw mark === '' ? refusal : withMark(refusal, mark);
  const { message, rankeeId, newRankId } = change;
  return { success: true, message: message + mark, rankeeId, newRankId };
}

function withMark({ code, message, hint, retryAfterMs, cause }: RankdError, mark: string): RankdError {
  return new RankdError(code, message + mark, { hint, retryAfterMs, cause });
}
