import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, RankdError, reasons } from '../base/errors.ts';
import type { Family } from './compat/family.ts';

/**
 * The HTTP status of each code. Except for `internal`, codes with status 500 are for the operator: a game receives
 * `internal` instead or, for `config_invalid`, which only the store throws at run time, `store_unavailable`.
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
  rank_differs: 409,
  reason_required: 400,
  needs_ladder: 409,
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
  view_only: 500,
  not_from_page: 500,
  wrong_host: 500,
  too_many_streams: 500,
} as const satisfies Record<ErrorCode, number>;

export type PublicCode = {
  [Code in ErrorCode]: Code extends 'internal' ? Code : (typeof statuses)[Code] extends 500 ? never : Code;
}[ErrorCode];

export const publicCodes = (Object.keys(statuses) as ErrorCode[]).filter(isPublic);

function isPublic(code: ErrorCode): code is PublicCode {
  return statuses[code] !== 500 || code === 'internal';
}

/** The meaning of each code, for the API documentation. */
export const meanings = {
  missing_placeid: 'The request has no place id, and the key requires one.',
  invalid_request:
    'The request is not HTTP or not JSON, or a field is missing or has the wrong type; the message names each one.',
  missing_authorization: 'The `Authorization: Bearer <game key>` header is missing.',
  invalid_key: 'rankd does not accept the key; its log and audit have the reason.',
  place_not_whitelisted:
    'The place is not on the whitelist of this key, its entry is disabled, or the Roblox-Id header names a different place.',
  key_not_allowed: 'The key lacks the scope for this operation, or can only change ranks in the other direction.',
  rank_not_allowed: 'The rank is above a ceiling, locked, not on the ladder, or reserved for guests or the owner.',
  member_protected: 'The policy protects the member, or a role that the member holds.',
  ranker_not_allowed: 'The policy does not allow this ranker to make this change.',
  above_acting_account: 'The Roblox account that rankd uses cannot change this member or role.',
  member_not_found: 'The rankee is not in the group.',
  unknown_rank: 'The group has no such rank or role; the message lists the existing ones.',
  ambiguous_rank: 'Two roles share that rank number; send the role id.',
  ambiguous_name: 'Two roles have that name; send the role id.',
  no_further_rank: 'The member already has the highest or lowest rank that rankd can give.',
  rank_differs:
    'The member does not have the rank that the request expects (`ifRank`, or `oldRankName` with policy.stale); the message contains the actual rank.',
  reason_required: 'The policy requires a reason for each change, and the request has none.',
  needs_ladder: 'Extra roles require `group.ladder` in the configuration.',
  configuration_misfit:
    'This change depends on a setting that names a role that the group no longer has; only the operator can correct it.',
  user_not_found: 'No Roblox user has that name.',
  user_renamed: 'The user no longer has that name; send the user id, or the current name, which the message contains.',
  idempotency_mismatch: 'The Idempotency-Key was already used for a different request.',
  idempotency_in_progress: 'The first request with this Idempotency-Key is still in progress.',
  not_found: 'This address does not exist.',
  method_not_allowed: 'The address does not accept this method; `Allow` lists those it accepts.',
  request_timeout: 'The request took too long to arrive.',
  body_too_large: 'The body is larger than 64 KiB.',
  headers_too_large: 'The headers are larger than 16 KiB.',
  cooldown: 'The cooldown of the member or the ranker has not ended yet.',
  too_many_requests:
    'The request exceeds a limit: of the key, of the place, on simultaneous requests for one member, or on wrong keys from one address.',
  member_suspended: 'The member is suspended; until the suspension ends, no game can change the rank.',
  already_suspended: 'The member is already suspended; the message contains the end of the suspension.',
  not_suspended: 'The member is not suspended.',
  suspended_by_operator: 'The operator suspended the member, and only the operator can end the suspension.',
  key_paused: 'The circuit breaker or the operator paused the key; only the operator can resume it.',
  internal: 'An error occurred inside rankd; its log has the details.',
  platform_rejected: 'Roblox refused the change for another reason.',
  platform_credential: "Roblox does not accept rankd's credential.",
  platform_busy: "Roblox's rate limit left no room for the change before the deadline; nothing was changed.",
  platform_unavailable: 'Roblox does not respond, or there was no time left to call it; nothing was changed.',
  store_unavailable: 'rankd cannot read or write its database.',
  shutting_down: 'rankd is stopping or restarting.',
  outcome_unknown: 'rankd sent the change to Roblox but could not confirm the outcome yet; it continues to check.',
} as const satisfies Record<PublicCode, string>;

interface ErrorAnswer {
  status: number;
  code: ErrorCode;
  reason: string;
  message: string;
  /** Seconds to wait, if waiting helps. */
  retryAfter: number | undefined;
  json: string;
}

/** Keeps responses below 2 KB. */
const maxMessageBytes = 1_500;

/** Sends the public part of an error, and adds the rest to the request's log line. */
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

function asFamily({ code, json, ...answer }: ErrorAnswer, { statuses, errorFields }: Family): ErrorAnswer {
  const translated = { ...answer, code, status: statuses[code] ?? answer.status };
  return { ...translated, json: JSON.stringify({ ...JSON.parse(json), ...errorFields(translated) }) };
}

/** Converts Fastify's 4xx errors to `invalid_request`, and returns any other error unchanged. */
export function fromFramework(error: unknown): unknown {
  const { statusCode = 500 } = Object(error) as { statusCode?: number };
  if (statusCode >= 500) return error;
  return new RankdError('invalid_request', 'rankd could not read the request; check its URL.', { cause: error });
}

/** Builds the response to an error without revealing any internals of rankd. */
export function answerTo(error: unknown, requestId: string): ErrorAnswer {
  const { code, message, retryAfterMs } = publicPart(error) ?? internalError(requestId);
  const retryAfter = retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000));
  const reason = reasons[code];
  // Concatenation takes half the time of JSON.stringify; only the message can contain characters that need escaping.
  const shortened = truncated(message);
  const start = `{"success":false,"error":"${reason}","code":"${code}","message":${JSON.stringify(shortened)}`;
  const json = `${start},"requestId":"${requestId}"${retryAfter === undefined ? '' : `,"retryAfter":${retryAfter}`}}`;
  return { status: statuses[code], code, reason, message: shortened, retryAfter, json };
}

/**
 * Truncates a message to `maxMessageBytes`. A message can contain long names from callers, and one character can take
 * six bytes in JSON.
 */
function truncated(message: string): string {
  if (message.length * 6 <= maxMessageBytes) return message;
  let bytes = 0;
  let shortened = '';
  for (const character of message) {
    bytes += Buffer.byteLength(JSON.stringify(character)) - 2;
    if (bytes > maxMessageBytes) return `${shortened}…`;
    shortened += character;
  }
  return shortened;
}

/** Returns the error that the caller is allowed to see, or `undefined` for an internal error. */
function publicPart(error: unknown): RankdError | undefined {
  if (!(error instanceof RankdError)) return undefined;
  if (error.code !== 'config_invalid') return isPublic(error.code) ? error : undefined;
  return new RankdError('store_unavailable', 'rankd cannot use its database with the current configuration.');
}

function internalError(requestId: string): RankdError {
  const message = `Something went wrong inside rankd; its log has the details under request ${requestId}.`;
  return RankdError.withoutStack('internal', message);
}
