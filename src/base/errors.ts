/**
 * Every way rankd says no. A code is stable and public; the words beside it are the short reason every answer carries.
 * `http/errors.ts` gives each code its status, `cli/errors.ts` its exit code.
 */
export const reasons = {
  // the request
  missing_placeid: 'Missing placeid',
  invalid_request: 'Invalid request',
  missing_authorization: 'Missing or invalid Authorization header',
  invalid_key: 'Invalid API Key',
  place_not_whitelisted: 'Place not whitelisted',
  key_not_allowed: 'Not allowed for this key',
  // the change
  rank_not_allowed: 'Rank not allowed',
  member_protected: 'Member protected',
  ranker_not_allowed: 'Ranker not allowed',
  above_acting_account: 'Above the acting account',
  member_not_found: 'Member not found',
  unknown_rank: 'Unknown rank',
  ambiguous_rank: 'Ambiguous rank',
  idempotency_mismatch: 'Idempotency key reused',
  idempotency_in_progress: 'Still in progress',
  // the edge
  not_found: 'Not found',
  method_not_allowed: 'Method not allowed',
  request_timeout: 'Request timeout',
  body_too_large: 'Body too large',
  headers_too_large: 'Headers too large',
  cooldown: 'Cooldown active',
  too_many_requests: 'Too many requests',
  key_paused: 'Key paused',
  // this daemon and the platform behind it
  internal: 'Internal Server Error',
  platform_rejected: 'Rejected by the platform',
  platform_credential: 'Platform credential not accepted',
  platform_busy: 'Platform busy',
  platform_unavailable: 'Platform unavailable',
  store_unavailable: 'Store unavailable',
  shutting_down: 'Shutting down',
  outcome_unknown: 'Outcome unknown',
  // the operator's side
  usage: 'Wrong usage',
  already_exists: 'Already exists',
  conflict: 'Conflict',
  config_invalid: 'Configuration invalid',
  no_permission: 'No permission',
  schema_newer: 'Database is newer than this rankd',
  port_taken: 'Port taken',
  backup_unusable: 'Backup not usable',
  daemon_unavailable: 'Daemon not available',
} as const;

export type ErrorCode = keyof typeof reasons;

export interface ErrorDetails {
  /** How long until trying again can help, in milliseconds; absent where waiting does not help. */
  retryAfterMs?: number | undefined;
  /** The command or edit that mends it, for the second line of a terminal error. */
  hint?: string | undefined;
  /** What the caller must not be told, e.g. that a key is revoked rather than unknown: for log and audit. */
  internal?: string | undefined;
  /** The underlying error: for the log, never for a caller. */
  cause?: unknown;
}

/** An expected failure. `message` is one sentence that a group owner can act on; it never carries a secret. */
export class RankdError extends Error {
  override readonly name = 'RankdError';
  readonly code: ErrorCode;
  readonly retryAfterMs: number | undefined;
  readonly hint: string | undefined;
  readonly internal: string | undefined;

  constructor(code: ErrorCode, message: string, { retryAfterMs, hint, internal, cause }: ErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.hint = hint;
    this.internal = internal;
  }

  /**
   * For what callers are told thousands of times a second: to find out where an error was made costs more than the checks
   * that led to it.
   */
  static withoutStack(...[code, message, details]: ConstructorParameters<typeof RankdError>): RankdError {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    const error = new RankdError(code, message, details);
    Error.stackTraceLimit = stackTraceLimit;
    return error;
  }

  /** The short reason of this code, e.g. `Invalid API Key`. */
  get reason(): string {
    return reasons[this.code];
  }
}

/** True when `error` is a RankdError with one of `codes` (any code when none is named). */
export function isRankdError(error: unknown, ...codes: ErrorCode[]): error is RankdError {
  return error instanceof RankdError && (codes.length === 0 || codes.includes(error.code));
}

/** Anything thrown, as an error to show. What rankd does not know is `internal`. */
export function asRankdError(cause: unknown): RankdError {
  if (cause instanceof RankdError) return cause;
  const message = `Something went wrong inside rankd: ${cause instanceof Error ? cause.message : String(cause)}`;
  return new RankdError('internal', message, { cause });
}
