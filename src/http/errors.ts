import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, RankdError, reasons } from '../base/errors.ts';
import type { Family } from './compat/family.ts';

/**
 * The status of every code. Codes of the operator's side never reach a game: they are answered as `internal`, and `config_invalid`,
 * which only the store throws while rankd runs, as `store_unavailable`.
 */
export const statuses = {
  missing_placeid: 400,
  invalid_request: 400,
  missing_authorization: 401,
  invalid_key: 401,
  place_not_whitelisted: 403,
  key_not_allowed: 403,
  rank_not_allowed: 403,
  member_protected: 403,
  ranker_not_allowed: 403,
  above_acting_account: 403,
  member_not_found: 404,
  unknown_rank: 400,
  ambiguous_rank: 409,
  ambiguous_name: 409,
  no_further_rank: 409,
  configuration_misfit: 409,
  user_not_found: 404,
  user_renamed: 409,
  idempotency_mismatch: 422,
  idempotency_in_progress: 409,
  not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  body_too_large: 413,
  headers_too_large: 431,
  cooldown: 429,
  too_many_requests: 429,
  key_paused: 429,
  internal: 500,
  platform_rejected: 502,
  platform_credential: 502,
  platform_busy: 503,
  platform_unavailable: 503,
  store_unavailable: 503,
  shutting_down: 503,
  outcome_unknown: 504,
  member_suspended: 403,
  already_suspended: 409,
  not_suspended: 404,
  suspended_by_operator: 403,
  usage: 500,
  already_exists: 500,
  conflict: 500,
  config_invalid: 500,
  no_permission: 500,
  schema_newer: 500,
  port_taken: 500,
  backup_unusable: 500,
  daemon_unavailable: 500,
  no_session: 500,
  link_refused: 500,
  session_idle: 500,
  not_from_page: 500,
  wrong_host: 500,
  too_many_streams: 500,
} as const satisfies Record<ErrorCode, number>;

/** The codes that a caller can get. */
export type PublicCode = {
  [Code in ErrorCode]: Code extends 'internal' ? Code : (typeof statuses)[Code] extends 500 ? never : Code;
}[ErrorCode];

export const publicCodes = (Object.keys(statuses) as ErrorCode[]).filter(isPublic);

function isPublic(code: ErrorCode): code is PublicCode {
  return statuses[code] !== 500 || code === 'internal';
}

export interface ErrorAnswer {
  status: number;
  code: ErrorCode;
  /** The short reason of the code. */
  reason: string;
  message: string;
  /** Seconds to wait, if waiting helps. */
  retryAfter: number | undefined;
  /** The body. */
  json: string;
}

/** An answer stays below 2 KB; this leaves room for the rest of it. */
const maxMessageBytes = 1_500;

/** Answers a request with what its caller may be told of an error. The log is told the rest. */
export function sendError({
  error,
  request,
  reply,
}: {
  error: unknown;
  request: FastifyRequest;
  reply: FastifyReply;
}): FastifyReply {
  const known = fromFramework(error);
  const { family } = request.routeOptions.config;
  const answer = answerTo(known, request.id);
  const { status, retryAfter, json } = family === undefined ? answer : asFamily(answer, family);
  request.notes.level = status >= 500 ? 'warn' : 'info';
  if (status === 500) request.notes.failure = error;
  if (known instanceof RankdError) request.notes.error = known;
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter);
  return reply.code(status).type('application/json; charset=utf-8').send(json);
}

/** The same answer as the clients of another service understand it. */
function asFamily({ code, json, ...answer }: ErrorAnswer, { statuses, errorFields }: Family): ErrorAnswer {
  const told = { ...answer, code, status: statuses[code] ?? answer.status };
  return { ...told, json: JSON.stringify({ ...JSON.parse(json), ...errorFields(told) }) };
}

/** Fastify's own refusals, in rankd's words. */
export function fromFramework(error: unknown): unknown {
  const { statusCode = 500 } = Object(error) as { statusCode?: number };
  if (statusCode >= 500) return error;
  return new RankdError('invalid_request', 'The request could not be read: check its address.', { cause: error });
}

/** What a caller is told of an error: what they can act on, and nothing about the inside of rankd. */
export function answerTo(error: unknown, requestId: string): ErrorAnswer {
  const told = publicly(error) ?? internalError(requestId);
  const { code, message, retryAfterMs } = told;
  const retryAfter = retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000));
  const reason = reasons[code];
  // Put together by hand, which takes half as long: only the message can have characters that JSON escapes.
  const fits = fitting(message);
  const start = `{"success":false,"error":"${reason}","code":"${code}","message":${JSON.stringify(fits)}`;
  const json = `${start},"requestId":"${requestId}"${retryAfter === undefined ? '' : `,"retryAfter":${retryAfter}`}}`;
  return { status: statuses[code], code, reason, message: fits, retryAfter, json };
}

/** As much of a message as fits: it can have names in it that callers chose, and one character can take six bytes in JSON. */
function fitting(message: string): string {
  if (message.length * 6 <= maxMessageBytes) return message;
  let bytes = 0;
  let fits = '';
  for (const character of message) {
    bytes += Buffer.byteLength(JSON.stringify(character)) - 2;
    if (bytes > maxMessageBytes) return `${fits}…`;
    fits += character;
  }
  return fits;
}

/** What a caller may be told of an error, if anything. */
function publicly(error: unknown): RankdError | undefined {
  if (!(error instanceof RankdError)) return undefined;
  if (error.code !== 'config_invalid') return isPublic(error.code) ? error : undefined;
  return new RankdError('store_unavailable', 'The database of rankd cannot be used as it is configured.');
}

function internalError(requestId: string): RankdError {
  const message = `Something went wrong inside rankd; its log says what under request ${requestId}.`;
  return RankdError.withoutStack('internal', message);
}
