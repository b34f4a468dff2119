import { shorten } from '../../base/text.ts';
import { retryAfterMs } from '../../base/time.ts';
import type { Outcome } from './progress.ts';
import { maxRetryAfterMs } from './schedule.ts';
import type { WebhookKind } from './webhook.ts';

/** A target's response, or the reason there was none. */
export type Answer =
  | { isAnswered: true; status: number; header(name: string): string | undefined; text: string }
  | { isAnswered: false; error: string };

/** The meaning of a response. */
export function outcomeOf(kind: WebhookKind, answer: Answer, now: number): Outcome {
  if (!answer.isAnswered) return { kind: 'failed', error: answer.error };
  return kind === 'discord' ? discordOutcome(answer, now) : standardOutcome(answer, now);
}

type Answered = Answer & { isAnswered: true };

function standardOutcome(answer: Answered, now: number): Outcome {
  const { status } = answer;
  if (isSuccess(status)) return { kind: 'delivered', status };
  const error = inWords(answer);
  if (status === 410) return { kind: 'gone', status, error: 'the target answered 410: it wants no more events' };
  if ([400, 413, 422].includes(status)) return { kind: 'refused', status, error };
  const asked = [429, 503].includes(status) ? retryAfterMs(answer.header('retry-after'), now) : undefined;
  return { kind: 'failed', status, error, retryAfterMs: asked };
}

/**
 * Discord's limits: https://discord.com/developers/docs/topics/rate-limits. A deleted webhook must not be called again,
 * because Discord blocks addresses with too many refused calls.
 */
function discordOutcome(answer: Answered, now: number): Outcome {
  const { status } = answer;
  if (isSuccess(status)) {
    const resetMs = Number(answer.header('x-ratelimit-reset-after')) * 1000;
    const isUsedUp = answer.header('x-ratelimit-remaining') === '0' && resetMs > 0;
    return { kind: 'delivered', status, restMs: isUsedUp ? resetMs : undefined };
  }
  const error = inWords(answer);
  if (status === 429) {
    const body = jsonIn(answer.text);
    const told = typeof body['retry_after'] === 'number' ? body['retry_after'] * 1000 : undefined;
    const waitMs = told ?? retryAfterMs(answer.header('retry-after'), now) ?? 1_000;
    const isGlobal = body['global'] === true || answer.header('x-ratelimit-global') !== undefined;
    return { kind: 'busy', status, error, retryAfterMs: Math.min(maxRetryAfterMs, waitMs) + 100, isGlobal };
  }
  if (status === 404) return { kind: 'gone', status, error: 'the webhook was deleted in Discord' };
  if (status === 401 || status === 403) {
    return { kind: 'gone', status, error: `Discord does not accept the address of the webhook (${status})` };
  }
  if (status === 400) return { kind: 'refused', status, error };
  return { kind: 'failed', status, error };
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function inWords({ status, text }: Answered): string {
  if (status >= 300 && status < 400) return `answered ${status}: redirects are not followed`;
  return `answered ${status}${text === '' ? '' : `: ${shorten(text, 200)}`}`;
}

function jsonIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
