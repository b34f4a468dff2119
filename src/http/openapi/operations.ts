import { type PublicCode, publicCodes } from '../errors.ts';
import { greeting } from '../greeting.ts';
import type { answerHeaders, parameters, schemas } from './parts.ts';

/** One operation of the API, with what its description needs. */
export interface Operation {
  method: 'get' | 'post';
  path: string;
  /** Its name in generated clients. */
  id: string;
  summary: string;
  description: string;
  needsKey: boolean;
  parameters: ReadonlyArray<keyof typeof parameters>;
  body?: Content;
  answer: Content;
  /** What it answers if the header `Accept` names `application/json`, where that is something else. */
  jsonAnswer?: Content;
  /** Headers beside those of every answer. Errors may have them too. */
  answerHeaders: ReadonlyArray<keyof typeof answerHeaders>;
  /** Every error code of this operation except `method_not_allowed`. */
  codes: readonly PublicCode[];
}

export interface Content {
  /** JSON by default. */
  type?: string;
  description: string;
  /** The name of its schema, if it is JSON. */
  schema?: keyof typeof schemas;
  example?: unknown;
}

const keyHeaders = ['RateLimit-Policy', 'RateLimit', 'Deprecation', 'Sunset'] as const;

/** Errors that any HTTP request can get. */
const atTheEdge = [
  'invalid_request',
  'request_timeout',
  'headers_too_large',
  'body_too_large',
  'internal',
] as const satisfies PublicCode[];

const ofKeys = [
  ...atTheEdge,
  'missing_placeid',
  'missing_authorization',
  'invalid_key',
  'place_not_whitelisted',
  'key_not_allowed',
  'too_many_requests',
  'store_unavailable',
  'shutting_down',
] as const satisfies PublicCode[];

const ofReadiness = [
  ...atTheEdge,
  'platform_rejected',
  'platform_credential',
  'platform_busy',
  'platform_unavailable',
  'store_unavailable',
  'shutting_down',
] as const satisfies PublicCode[];

export const operations: readonly Operation[] = [
  {
    method: 'post',
    path: '/v1/apikey',
    id: 'verifyKey',
    summary: 'Verify an API key',
    description: 'Tells the workspace behind a key that is good for the place.',
    needsKey: true,
    parameters: [],
    body: {
      description: 'JSON, whatever its content type; gzip is accepted.',
      schema: 'VerifyRequest',
      example: { placeid: 1 },
    },
    answer: { description: 'The workspace id.', schema: 'WorkspaceId', example: 'ws_0aB1cD2eF3gH' },
    answerHeaders: keyHeaders,
    codes: ofKeys,
  },
  {
    method: 'post',
    path: '/v1/ranker',
    id: 'changeRank',
    summary: "Change a member's rank",
    description:
      'Makes the rank the highest of the member, and answers 200 only where Roblox was seen to hold it. What is not known in time is never reported as success or failure.',
    needsKey: true,
    parameters: ['placeid', 'Idempotency-Key'],
    body: {
      description: 'JSON, whatever its content type; gzip is accepted. Unknown fields are ignored.',
      schema: 'RankRequest',
      example: { rankerName: 'Builder', rankerId: 1003, rankeeName: 'Newcomer', rankeeId: 1001, newRankId: 20 },
    },
    answer: {
      description: 'The member holds the rank.',
      schema: 'RankAnswer',
      example: {
        success: true,
        message: 'Newcomer (1001) is now Officer (rank 20), was Trainee (rank 10).',
        rankeeId: 1001,
        newRankId: 20,
      },
    },
    answerHeaders: [...keyHeaders, 'x-rank-change', 'idempotent-replayed'],
    codes: publicCodes.filter((code) => code !== 'not_found' && code !== 'method_not_allowed'),
  },
  {
    method: 'get',
    path: '/',
    id: 'greeting',
    summary: 'What is this?',
    description: 'Says what answers here, to whoever opens the address in a browser.',
    needsKey: false,
    parameters: [],
    answer: { type: 'text/html; charset=utf-8', description: 'A short page; with `Accept: application/json`, JSON.' },
    jsonAnswer: {
      description: 'With `Accept: application/json`:',
      schema: 'Greeting',
      example: greeting,
    },
    answerHeaders: [],
    codes: atTheEdge,
  },
  {
    method: 'get',
    path: '/healthz',
    id: 'health',
    summary: 'Is the process there?',
    description: 'Answers while the process runs.',
    needsKey: false,
    parameters: [],
    answer: { description: 'It is.', schema: 'Health', example: { status: 'ok' } },
    answerHeaders: [],
    codes: atTheEdge,
  },
  {
    method: 'get',
    path: '/readyz',
    id: 'readiness',
    summary: 'Can it change ranks?',
    description: 'Asks the database, Roblox and the credential; after a failed write to the database it tries one.',
    needsKey: false,
    parameters: [],
    answer: { description: 'It can.', schema: 'Readiness', example: { status: 'ready' } },
    answerHeaders: [],
    codes: ofReadiness,
  },
  {
    method: 'get',
    path: '/openapi.json',
    id: 'openapi',
    summary: 'This description',
    description: 'The description of this API in OpenAPI 3.1.',
    needsKey: false,
    parameters: [],
    answer: { description: 'An OpenAPI document.' },
    answerHeaders: [],
    codes: atTheEdge,
  },
  {
    method: 'get',
    path: '/docs',
    id: 'docs',
    summary: 'This description, to read',
    description: 'The description of this API as a page for people.',
    needsKey: false,
    parameters: [],
    answer: { type: 'text/html; charset=utf-8', description: 'One page that loads nothing else.' },
    answerHeaders: [],
    codes: atTheEdge,
  },
];
