import type { FastifyReply } from 'fastify';
import * as z from 'zod';
import { RankdError } from '../../base/errors.ts';
import { callerHash } from '../../usecases/webhooks/send.ts';
import { authenticateRequest, authorize, authorizeChange } from '../callers.ts';
import { deadlineOf, makeChange, withoutOmitted } from '../changes.ts';
import { sendError } from '../errors.ts';
import { id, memberId, notAnObject, optionalText, parsePlaceId, rankOrRoleId, text, userId } from '../fields.ts';
import { jsonBody } from '../request-body.ts';
import { changeCodes, type Exchange, type FoundKey, placeIdHelp, type Route, route, workspaceId } from '../route.ts';

const rankBody = z.object(
  {
    rankerName: text.describe('Name of the player who requests the change.'),
    rankerId: userId.describe('User id of the player who requests the change; 0 if there is none.'),
    rankeeName: text.describe('Name of the member whose rank changes.'),
    rankeeId: memberId.describe('User id of the member whose rank changes, above 0.'),
    newRankId: rankOrRoleId.describe('The rank number in the group (1 to 255), or a role id (above 255).'),
    command: optionalText.describe('The command that led to the change; stored with it.'),
    oldRankName: optionalText.describe(
      'The rank as the game knew it; stored with the change, and compared with `policy.stale: refuse`.',
    ),
    prefix: optionalText.describe('The prefix of the command; stored with the change.'),
    webhookUrl: optionalText.describe(
      'rankd stores only the host of this address, and its SHA-256 if `webhooks.caller_url` is `match`; it never calls it.',
    ),
  },
  notAnObject,
);

export const v1Routes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/v1/apikey',
    docs: {
      id: 'verifyKey',
      summary: 'Verify a game key',
      description: 'Returns the workspace of a key that is valid for the place.',
    },
    key: { scope: 'verify', in: 'bearer', place: 'body' },
    body: {
      name: 'VerifyRequest',
      description: 'JSON, with any content type; gzip is accepted.',
      schema: z.object({ placeid: id.describe(placeIdHelp) }),
      example: { placeid: 1 },
    },
    answers: [
      {
        name: 'WorkspaceId',
        description: 'The workspace id, as a JSON string.',
        schema: workspaceId,
        example: 'ws_0aB1cD2eF3gH',
      },
    ],
    handler: verifyKey,
  }),
  route({
    method: 'POST',
    path: '/v1/ranker',
    docs: {
      id: 'changeRank',
      summary: "Change a member's rank",
      description:
        "Makes the rank the member's highest, and answers 200 only after Roblox has shown that the member holds it. It never reports an unknown outcome as success or failure.",
    },
    key: { scope: 'rank', in: 'bearer', place: 'query' },
    changesRanks: true,
    body: {
      name: 'RankRequest',
      description: 'JSON, with any content type; gzip is accepted. Unknown fields are ignored.',
      schema: rankBody,
      example: { rankerName: 'Builder', rankerId: 1003, rankeeName: 'Newcomer', rankeeId: 1001, newRankId: 20 },
    },
    answers: [
      {
        name: 'RankAnswer',
        description: 'The member holds the rank.',
        schema: z.strictObject({
          success: z.literal(true),
          message: z.string().describe('The result, in one sentence.'),
          rankeeId: z.int().min(1).describe('As in the request.'),
          newRankId: z.int().min(1).describe('As in the request.'),
        }),
        example: {
          success: true,
          message: 'Newcomer (1001) is now Officer (rank 20), was Trainee (rank 10).',
          rankeeId: 1001,
          newRankId: 20,
        },
      },
    ],
    codes: [...changeCodes, 'rank_differs'],
    handler: changeRank,
  }),
];

/**
 * Verifies a key. Games do this constantly, so the handler sends the response itself, and synchronously if the store is
 * synchronous.
 */
function verifyKey(exchange: Exchange): Promise<undefined> | undefined {
  const { app, request, reply } = exchange;
  const placeId = parsePlaceId(jsonBody(request), 'body');
  const answer = (keyRecord: FoundKey): undefined => {
    const caller = authorize(exchange, keyRecord, placeId);
    if (caller instanceof RankdError) return void sendError({ error: caller, request, reply });
    request.notes.level = 'debug'; // a verification changes nothing
    reply.type('application/json; charset=utf-8').send(JSON.stringify(caller.workspace.id));
  };
  const keyRecord = authenticateRequest(app, { request, placeId });
  return keyRecord instanceof Promise ? keyRecord.then(answer) : answer(keyRecord);
}

async function changeRank(exchange: Exchange<z.output<typeof rankBody>>): Promise<FastifyReply> {
  const { api, app, request, reply } = exchange;
  const placeId = parsePlaceId(request.query, 'query');
  const keyRecord = await api.inOrderOfArrival(authenticateRequest(app, { request, placeId }));
  const caller = await authorizeChange(exchange, keyRecord, placeId);
  if (caller instanceof RankdError) return sendError({ error: caller, request, reply });
  const { webhookUrl, ...fields } = exchange.body();
  const webhookHash = app.webhooks.callerUrl === 'match' ? callerHash(webhookUrl) : undefined;
  const reason = app.policy.reason === 'required' ? fields.command : undefined;
  const rankRequest = withoutOmitted({ ...fields, reason, webhookHost: hostOf(webhookUrl), webhookHash });
  const asked = { caller, placeId, asked: { request: rankRequest }, content: [rankRequest] };
  using deadline = deadlineOf(exchange);
  const { message, rankeeId, newRankId } = await makeChange(exchange, asked, deadline);
  return reply.send({ success: true, message, rankeeId, newRankId });
}

/** Returns only the host of a webhook's address, because anyone who has the whole address can post to the webhook. */
function hostOf(url: string | undefined): string | undefined {
  return url === undefined || !URL.canParse(url) ? undefined : new URL(url).host || undefined;
}
