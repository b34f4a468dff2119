import { hash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { z } from 'zod';
import { deadlineIn } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Key, RankRequest } from '../../core/model.ts';
import type { ChangeCaller, Idempotency } from '../../usecases/change/change-command.ts';
import { errorOf } from '../../usecases/change/change-outcome.ts';
import { type ChangeAnswer, changeRank } from '../../usecases/change/change-rank.ts';
import type { DaemonContext } from '../../usecases/daemon-context.ts';
import { authenticate } from '../../usecases/keys/authenticate.ts';
import { admit } from '../admit.ts';
import type { rankAnswer } from '../answers.ts';
import { fingerprintFrom } from '../connections.ts';
import { parsePlaceId } from '../ids.ts';
import type { InboundLimits } from '../inbound-limits.ts';
import { jsonBody } from '../json-body.ts';
import { rankLimits } from '../rank-limits.ts';
import { idempotencyKey, parseRankRequest } from '../rank-request.ts';
import { sendError } from '../send-error.ts';

/** POST /v1/ranker?placeid=…: changes one member's rank; 200 only where the platform was seen to hold it. */
export function rankerRoute(server: FastifyInstance, app: DaemonContext, inbound: InboundLimits): void {
  server.post('/v1/ranker', async (request, reply) => {
    const placeId = parsePlaceId(request.query, 'query');
    const presented = authenticate(app, { apiKey: fingerprintFrom(request), placeId });
    const limitsOf = (key: Key) => rankLimits(app.limits, { key, placeId });
    const admitted = admit(app, { request, reply, inbound }, { presented, placeId, scope: 'rank', limitsOf });
    if (admitted instanceof RankdError) return sendError(app, { error: admitted, request, reply });
    const { key, secretId } = admitted;
    const rankRequest = parseRankRequest(jsonBody(request));
    const order = {
      caller: { ...callerOf(key, placeId), secretId: String(secretId) },
      request: rankRequest,
      ...idempotencyOf(request.headers['idempotency-key'], placeId, rankRequest),
    };
    using deadline = deadlineIn(
      app.clock,
      Math.max(0, request.notes.arrivedAt + app.deadlineMs - app.clock.monotonic()),
    );
    // A copy: a configuration that is taken up meanwhile is not for this change.
    const answer = await changeRank({ ...app }, order, deadline);
    warnOfPause(app.log, answer);
    request.notes.facts = { ...request.notes.facts, changeId: answer.change.id, rankeeId: rankRequest.rankeeId };
    reply.header('x-rank-change', answer.change.id);
    if (answer.replayed) reply.header('idempotent-replayed', 'true');
    return reply.send(successOrThrow(answer));
  });
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
  const { success, data: key } = idempotencyKey.safeParse(given);
  if (!success) {
    throw new RankdError('invalid_request', `Idempotency-Key must be at most ${idempotencyKey.maxLength} characters.`);
  }
  return { idempotency: { key, fingerprint: hash('sha256', JSON.stringify([placeId, request])) } };
}

/** Warns of the one change that paused its key. The changes that the pause then stopped are in the history. */
function warnOfPause(log: Logger, { change, error }: ChangeAnswer): void {
  if (!error?.details?.pausedNow) return;
  const { details, hint } = error;
  log.warn({ keyId: change.keyId, changeId: change.id, reason: details.why, hint }, 'a key is now paused');
}

function successOrThrow({ change, error }: ChangeAnswer): z.infer<typeof rankAnswer> {
  const refusal = errorOf(change, error);
  if (refusal !== undefined) throw refusal;
  const { message, rankeeId, newRankId } = change;
  return { success: true, message, rankeeId, newRankId };
}
