import { type ErrorCode, type RankdError, reasons } from '../base/errors.ts';
import { ConfigError } from '../config/problem.ts';
import { withoutSecrets } from '../core/api-key.ts';

const usualHints: Partial<Record<ErrorCode, string>> = {
  usage: 'rankd --help',
  cooldown: 'wait, then run the command again',
  platform_busy: 'wait a moment, then run the command again',
  platform_unavailable: 'check the network and https://status.roblox.com, then run the command again',
  outcome_unknown: 'rankd history list --limit 1',
  unknown_rank: 'rankd group roles',
  ambiguous_rank: 'rankd group roles',
  ambiguous_name: 'rankd group roles',
  rank_not_allowed: 'rankd group roles',
  rank_differs: 'rankd rank show USER',
  no_session: 'rankd dashboard',
  link_refused: 'rankd dashboard',
  session_idle: 'rankd dashboard',
  internal: 'run the command again with -v and report what it prints',
};

export function hintOf({ code, hint, retryAfterMs }: RankdError): string {
  if (hint === undefined && code === 'platform_busy' && retryAfterMs !== undefined)
    return `wait ${Math.ceil(retryAfterMs / 1000)} s, then run the command again`;
  return hint ?? usualHints[code] ?? 'rankd --help';
}

/**
 * Returns the hint that the dashboard shows: the error's own or, if the operator must log in again, the command for a
 * new login link.
 */
export function pageHintOf({ code, hint }: RankdError): string | null {
  const isLogin = ['no_session', 'link_refused', 'session_idle'].includes(code);
  return hint ?? (isLogin ? (usualHints[code] ?? null) : null);
}

export function errorDocument(error: RankdError) {
  const { code, retryAfterMs } = error;
  return {
    success: false,
    error: reasons[code],
    code,
    message: withoutSecrets(error.message),
    try: hintOf(error),
    ...(retryAfterMs !== undefined && { retryAfter: Math.ceil(retryAfterMs / 1000) }),
    ...(error instanceof ConfigError && { problems: error.problems }),
  };
}
