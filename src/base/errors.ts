import type { ConnectionCause } from './connection-cause.ts';

/**
 * Maps every error code, which is stable and public, to the short reason in error responses. The HTTP statuses are in
 * `http/errors.ts`, the exit codes in `cli/output/errors.ts`.
 */
export const reasons = {
  // the request
  missing_placeid: 'Missing placeid',
  invalid_request: 'Invalid request',
  missing_authorization: 'Missing or invalid Authorization header',
  invalid_key: 'Invalid API Key',
  place_not_whitelisted: 'Place not whitelisted',
  key_not_allowed: 'Not allowed for this key',
  // the rank change
  rank_not_allowed: 'Rank not allowed',
  member_protected: 'Member protected',
  ranker_not_allowed: 'Ranker not allowed',
  above_acting_account: 'Above the acting account',
  member_not_found: 'Member not found',
  unknown_rank: 'Unknown rank',
  ambiguous_rank: 'Ambiguous rank',
  ambiguous_name: 'Ambiguous name',
  no_further_rank: 'No further rank',
  rank_differs: 'Rank differs',
  reason_required: 'Reason required',
  needs_ladder: 'Needs a ladder',
  configuration_misfit: 'Configuration does not fit the group',
  user_not_found: 'User not found',
  user_renamed: 'User renamed',
  member_suspended: 'Member suspended',
  already_suspended: 'Already suspended',
  not_suspended: 'Not suspended',
  suspended_by_operator: 'Suspended by the operator',
  idempotency_mismatch: 'Idempotency key reused',
  idempotency_in_progress: 'Still in progress',
  // HTTP and limits
  not_found: 'Not found',
  method_not_allowed: 'Method not allowed',
  request_timeout: 'Request timeout',
  body_too_large: 'Body too large',
  headers_too_large: 'Headers too large',
  cooldown: 'Cooldown active',
  too_many_requests: 'Too many requests',
  key_paused: 'Key paused',
  // this daemon, and the platform that it calls
  internal: 'Internal Server Error',
  platform_rejected: 'Rejected by Roblox',
  platform_credential: 'Roblox key not accepted',
  platform_busy: 'Roblox busy',
  platform_unavailable: 'Roblox unavailable',
  store_unavailable: 'Store unavailable',
  shutting_down: 'Shutting down',
  outcome_unknown: 'Outcome unknown',
  // commands and configuration
  usage: 'Wrong usage',
  already_exists: 'Already exists',
  conflict: 'Conflict',
  config_invalid: 'Configuration invalid',
  no_permission: 'No permission',
  schema_newer: 'Database is newer than this rankd',
  port_taken: 'Port taken',
  backup_unusable: 'Backup not usable',
  daemon_unavailable: 'Daemon not available',
  // the dashboard
  no_session: 'Not logged in',
  link_refused: 'Link not accepted',
  session_idle: 'The page was idle',
  view_only: 'View only',
  not_from_page: 'Not sent by the page',
  wrong_host: 'Wrong host',
  too_many_streams: 'Too many streams',
} as const;

export type ErrorCode = keyof typeof reasons;

export interface RankdErrorOptions {
  /** Absent if waiting does not help. */
  retryAfterMs?: number | undefined;
  /** The command or edit that fixes the problem. A terminal shows it on a second line. */
  hint?: string | undefined;
  /**
   * Details for the log, the audit log and the operator. They must never reach the caller, because they reveal, for
   * example, that the key is revoked rather than unknown.
   */
  details?: RefusalDetails | undefined;
  connection?: ConnectionCause | undefined;
  /** For the log, never for a caller. */
  cause?: unknown;
}

/** A failure whose message a group owner can act on. The message never contains a secret. */
export class RankdError extends Error {
  override readonly name = 'RankdError';
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly hint: string | undefined;
  readonly details: RefusalDetails | undefined;
  readonly connection: ConnectionCause | undefined;

  constructor(code: ErrorCode, message: string, options: RankdErrorOptions = {}) {
    const { retryAfterMs, hint, details, connection, cause } = options;
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.hint = hint;
    this.details = details;
    this.connection = connection;
  }

  /** Creates an error for frequent refusals, whose stack trace would cost more than the checks before it. */
  static withoutStack(...[code, message, options]: ConstructorParameters<typeof RankdError>): RankdError {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      return new RankdError(code, message, options);
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }
}

export function isRankdError(error: unknown, ...codes: ErrorCode[]): error is RankdError {
  return error instanceof RankdError && (codes.length === 0 || codes.includes(error.code));
}

export function asRankdError(cause: unknown): RankdError {
  if (cause instanceof RankdError) return cause;
  const message = `Something went wrong inside rankd: ${cause instanceof Error ? cause.message : String(cause)}`;
  return new RankdError('internal', message, { cause });
}

/**
 * Describes each reason for a refusal to the operator. Callers never receive these descriptions, because they would
 * reveal which keys exist.
 */
const reasonTexts = {
  no_key: 'the request has no game key',
  malformed: 'the text is not a game key, or is mistyped',
  no_signature: 'the request has no Discord signature',
  wrong_signature: 'the signature does not match the request and discord.public_key',
  stale_signature:
    "the signature's timestamp is more than 5 minutes off: the request is old, or this machine's clock is wrong",
  unsigned: 'the notification has no Roblox signature: its webhook has no secret',
  wrong_secret: 'the signature does not match the notification and the secret in erasure.secret_file',
  stale_notification:
    "the signature's timestamp is more than 10 minutes off: the notification is a repeat, or this machine's clock is wrong",
  unknown: 'no such key',
  wrong_mode: ({ mode }: Partial<RefusalDetails>) =>
    `the prefix of the secret does not match the mode of the key, which is ${mode}`,
  workspace_suspended: 'the workspace is suspended',
  not_top_plan: 'the workspace is not on the top plan',
  revoked: 'the key is revoked',
  expired: 'the key is expired',
  rotated_out: 'a rotation of the key replaced this secret',
  simulated: 'the key was created for the simulated group and is not valid for any other',
  missing_scope: 'the key lacks the required scope',
  not_listed: "the place is not on the key's whitelist",
  disabled: "the place is disabled on the key's whitelist",
  no_place: 'the request has no place id, and the key requires one',
  unpublished: 'the game was never published, so it has no place id',
  roblox_id_mismatch: 'the Roblox-Id header is missing or names a different place',
  paused: ({ why }: Partial<RefusalDetails>) => (why === undefined ? 'the key is paused' : `the key is paused: ${why}`),
};

export type RefusalReason = keyof typeof reasonTexts;

export interface RefusalDetails {
  reason: RefusalReason;
  keyId?: string;
  /** Present if the change paused the key. */
  keyName?: string;
  placeId?: number;
  mode?: 'live' | 'test';
  /** True if this change paused the key, because it would have exceeded the limit in `why`. */
  pausedNow?: boolean;
  why?: string;
}

/** e.g. `the key is revoked (key_8TqLx0vBz3Rw)` */
export function describeRefusal(details: RefusalDetails): string {
  const { reason, keyId, placeId } = details;
  const subjects = [keyId, placeId === undefined ? undefined : `place ${placeId}`].filter((one) => one !== undefined);
  const text = reasonTexts[reason];
  const words = typeof text === 'string' ? text : text(details);
  return subjects.length === 0 ? words : `${words} (${subjects.join(', ')})`;
}

/** Returns the code of a Node.js or SQLite error, e.g. `ENOENT` or `SQLITE_BUSY`; '' if it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
