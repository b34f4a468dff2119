import type { PublicCode } from '../errors.ts';
import type { answerHeaders, parameters, schemas } from './parts.ts';

/** One operation of the API, with what its description needs. */
export interface Operation {
  method: 'get' | 'post';
  path: string;
  /** Its name in generated clients. */
  id: string;
  summary: string;
  description: string;
  /** Where the key can stand: nowhere, in `Authorization` alone, or there or in `x-api-key`. */
  key: 'none' | 'bearer' | 'bearer or header';
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

export const keyHeaders = ['RateLimit-Policy', 'RateLimit', 'Deprecation', 'Sunset'] as const;

/** Errors that any HTTP request can get. */
export const atTheEdge = [
  'invalid_request',
  'request_timeout',
  'headers_too_large',
  'body_too_large',
  'internal',
] as const satisfies PublicCode[];

export const ofKeys = [
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

/** Errors of every operation that changes ranks. */
export const ofChanges = [
  ...ofKeys,
  'rank_not_allowed',
  'member_protected',
  'member_suspended',
  'ranker_not_allowed',
  'above_acting_account',
  'member_not_found',
  'unknown_rank',
  'ambiguous_rank',
  'configuration_misfit',
  'idempotency_mismatch',
  'idempotency_in_progress',
  'cooldown',
  'key_paused',
  'platform_rejected',
  'platform_credential',
  'platform_busy',
  'platform_unavailable',
  'outcome_unknown',
] as const satisfies PublicCode[];
