import type { ErrorCode, RankdError } from '../../base/errors.ts';
import { ConfigError } from '../../config/problem.ts';
import { withoutKeys } from '../../core/api-key.ts';
import { errorDocument } from '../../usecases/error-document.ts';
import { jsonLine, printable, printableLines } from './text.ts';

/**
 * Exit codes, keyed by error code: 1 and 2 follow shells, 69 and above follow sysexits(3), and 3 to 5 are rankd's own.
 */
export const exitCodes = {
  missing_placeid: 2,
  invalid_request: 2,
  usage: 2,
  member_not_found: 3,
  not_found: 3,
  already_exists: 4,
  conflict: 4,
  idempotency_mismatch: 4,
  idempotency_in_progress: 75,
  missing_authorization: 5,
  invalid_key: 5,
  place_not_whitelisted: 5,
  key_not_allowed: 5,
  rank_not_allowed: 5,
  member_protected: 5,
  ranker_not_allowed: 5,
  above_acting_account: 5,
  unknown_rank: 5,
  ambiguous_rank: 5,
  ambiguous_name: 5,
  no_further_rank: 5,
  rank_differs: 5,
  reason_required: 5,
  user_not_found: 3,
  user_renamed: 4,
  member_suspended: 5,
  already_suspended: 4,
  not_suspended: 3,
  suspended_by_operator: 5,
  platform_rejected: 5,
  no_session: 5,
  link_refused: 5,
  session_idle: 5,
  view_only: 5,
  not_from_page: 5,
  wrong_host: 5,
  key_paused: 5,
  backup_unusable: 5,
  method_not_allowed: 1,
  request_timeout: 1,
  body_too_large: 1,
  headers_too_large: 1,
  internal: 1,
  port_taken: 69,
  daemon_unavailable: 69,
  platform_unavailable: 69,
  store_unavailable: 69,
  shutting_down: 75,
  cooldown: 75,
  too_many_requests: 75,
  too_many_streams: 75,
  platform_busy: 75,
  outcome_unknown: 75,
  no_permission: 77,
  platform_credential: 77,
  config_invalid: 78,
  needs_ladder: 78,
  configuration_misfit: 78,
  schema_newer: 78,
} as const satisfies Record<ErrorCode, number>;

interface ErrorFormat {
  asJson: boolean;
  /** Includes the chain of causes. */
  isVerbose?: boolean;
}

export function formatError(error: RankdError, { asJson, isVerbose = false }: ErrorFormat): string {
  const document = errorDocument(error);
  const stack =
    isVerbose && error.cause instanceof Error ? withoutKeys(chainOf(error.cause).join('\ncaused by: ')) : undefined;
  if (asJson) return jsonLine({ v: 1, ...document, ...(stack !== undefined && { cause: stack }) });
  const hasLines = error.code === 'config_invalid' || error instanceof ConfigError;
  const shown = hasLines ? printableLines(document.message) : printable(document.message);
  const lines = `error: ${shown}\ntry: ${printableLines(document.try)}\n`;
  return stack === undefined ? lines : `${lines}${printableLines(stack)}\n`;
}

/** Returns the stack of every error in the chain, because `fetch` hides the reason in nested causes. */
function chainOf(error: unknown, depth = 0): string[] {
  if (!(error instanceof Error) || depth > maxDepth) return error === undefined ? [] : [String(error)];
  const { code } = error as NodeJS.ErrnoException;
  const stack = error.stack ?? String(error);
  const [title = '', ...frames] = stack.split('\n');
  const named = typeof code !== 'string' || title.includes(code) ? stack : [`${title} (${code})`, ...frames].join('\n');
  const inner = [
    ...(error instanceof AggregateError ? error.errors : []),
    ...(error.cause === undefined ? [] : [error.cause]),
  ];
  return [named, ...inner.flatMap((one) => chainOf(one, depth + 1))];
}

const maxDepth = 8;

/** A command throws this to set its exit code after it has printed everything. */
export class ExitCode extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}

/** Returns the exit code of a run over many members. Skipped members do not count as failures. */
export function exitCodeOfRun(run: {
  results: ReadonlyArray<{ state: string }>;
  left: readonly unknown[];
  error: RankdError | undefined;
  isInterrupted: boolean;
}): number {
  const has = (state: string) => run.results.some((result) => result.state === state);
  if (run.isInterrupted && run.left.length > 0) return 130;
  if (run.error !== undefined) return exitCodes[run.error.code];
  if (has('unknown')) return exitCodes.outcome_unknown;
  return has('refused') ? 5 : 0;
}
