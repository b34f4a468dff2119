import type { FastifyReply } from 'fastify';
import { RankdError } from '../errors.ts';
import type { Clock } from '../ports.ts';

export interface Limit {
  /** Shown in the `RateLimit` headers. */
  name: string;
  perMinute: number;
  /** How many may come at once after a quiet time. */
  burst: number;
}

/** A token bucket per key: `burst` at once, `perMinute` in the long run. */
export class InboundLimit {
  readonly #clock: Clock;
  readonly #limit: Limit;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(clock: Clock, limit: Limit) {
    this.#clock = clock;
    this.#limit = limit;
  }

  /** Takes one request of this key and sets the `RateLimit` headers. Throws `too_many_requests` where none is left. */
  take(keyId: string, reply: Pick<FastifyReply, 'headers'>): void {
    const { name, perMinute, burst } = this.#limit;
    if (perMinute === 0) return;
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(keyId) ?? { tokens: burst, at: now };
    const perMs = perMinute / 60_000;
    bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.at) * perMs);
    bucket.at = now;
    this.#buckets.set(keyId, bucket);
    const isLeft = bucket.tokens >= 1;
    if (isLeft) bucket.tokens -= 1;
    const secondsToFull = Math.ceil((burst - bucket.tokens) / perMs / 1000);
    reply.headers({
      'ratelimit-policy': `"${name}";q=${burst};w=${Math.ceil(burst / perMs / 1000)}`,
      ratelimit: `"${name}";r=${Math.floor(bucket.tokens)};t=${secondsToFull}`,
    });
    if (isLeft) return;
    throw new RankdError('too_many_requests', `This key may send ${perMinute} ${name} requests a minute; slow down.`, {
      retryAfterMs: (1 - bucket.tokens) / perMs,
    });
  }
}
