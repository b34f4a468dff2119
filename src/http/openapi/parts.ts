import * as z from 'zod';
import {
  changeAnswer,
  errorAnswer,
  greetingAnswer,
  healthAnswer,
  memberAnswer,
  rankAnswer,
  readyAnswer,
  rolesAnswer,
  suspensionAnswer,
  workspaceAnswer,
  workspaceId,
} from '../answers.ts';
import { id } from '../ids.ts';
import { idempotencyKey, memberId, rankBody } from '../rank-request.ts';
import { setRankBody, stepBody } from '../v2/change-request.ts';
import { userName } from '../v2/member-query.ts';
import { suspendBody } from '../v2/suspension-request.ts';

/** What the operations are made of: the same schemas that check the requests and type the answers. */

const placeIdHelp = 'The place id (game.PlaceId). You can also write it `placeId`.';

export const schemas = {
  VerifyRequest: z.object({ placeid: id.describe(placeIdHelp) }),
  WorkspaceId: workspaceId,
  RankRequest: rankBody,
  RankAnswer: rankAnswer,
  Greeting: greetingAnswer,
  SetRankRequest: setRankBody,
  StepRequest: stepBody,
  SuspendRequest: suspendBody,
  ChangeAnswer: changeAnswer,
  MemberAnswer: memberAnswer,
  RolesAnswer: rolesAnswer,
  WorkspaceAnswer: workspaceAnswer,
  SuspensionAnswer: suspensionAnswer,
  Health: healthAnswer,
  Readiness: readyAnswer,
  Error: errorAnswer,
} satisfies Record<string, z.ZodType>;

export const parameters = {
  placeid: {
    name: 'placeid',
    in: 'query',
    required: true,
    description: placeIdHelp,
    schema: id,
  },
  placeOfRequest: {
    name: 'placeid',
    in: 'query',
    required: false,
    description:
      'The place id (game.PlaceId). Without it, the header `Roblox-Id` tells the place, which Roblox adds to the requests of its game servers. A key made with `--any-place` needs neither.',
    schema: id,
  },
  robloxUserId: {
    name: 'robloxUserId',
    in: 'query',
    required: false,
    description: 'User id of the member, above 0; or send `username`.',
    schema: memberId,
  },
  username: {
    name: 'username',
    in: 'query',
    required: false,
    description: 'The user name that the member has today, instead of `robloxUserId`.',
    schema: userName,
  },
  'Idempotency-Key': {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description: 'The first outcome is kept for 24 hours and replayed to every request with the same key and content.',
    schema: idempotencyKey,
  },
};

export const answerHeaders = {
  'x-request-id': { description: 'Names the request in the log.', schema: errorAnswer.shape.requestId },
  'x-simulated-group': {
    description: 'There if the group is simulated: nothing touches Roblox.',
    schema: z.literal('true'),
  },
  'Retry-After': { description: 'Seconds to wait; only where waiting helps.', schema: z.int().min(1) },
  'RateLimit-Policy': {
    description: 'The inbound limits that this request counts for, where there are any: q requests in w seconds.',
    schema: z.string(),
  },
  RateLimit: {
    description: 'What is left of each: r requests, and t seconds until all of it is back.',
    schema: z.string(),
  },
  Deprecation: {
    description: 'Where the key is the old one of a rotation: since when, as `@` and seconds since 1970 (RFC 9745).',
    schema: z.string().regex(/^@\d+$/),
  },
  Sunset: {
    description: 'When that key will be refused, as an HTTP date (RFC 8594).',
    schema: z.string().regex(/ GMT$/),
  },
  'x-rank-change': { description: 'The id of the change in the history.', schema: z.string().regex(/^chg_\w+$/) },
  'x-rankd-proof': {
    description:
      'Where the request has a header x-rankd-question: by it, `rankd doctor --url` tells that it was its own daemon that answered.',
    schema: z.string().regex(/^[\w-]{43}$/),
  },
  'idempotent-replayed': {
    description: 'There where this is the outcome of an earlier request with the same Idempotency-Key.',
    schema: z.literal('true'),
  },
};

/** The headers of every answer. */
export const headersOfAll = ['x-request-id', 'x-simulated-group'] as const satisfies Array<keyof typeof answerHeaders>;
