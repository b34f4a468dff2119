import type { FastifyReply } from 'fastify';
import { RankdError } from '../errors.ts';
import type { Clock } from '../ports.ts';
import { type Rate, type Taken, TokenBuckets } from './token-buckets.ts';

export interface Limit extends Rate {
  /** As the `RateLimit` headers name it. */
  name: string;
  /** What it is counted for: a key, a place of a key, an address. */
  of: string;
  /** What is told where none is left. */
  refusal: string;
  /** For log and audit. */
  internal?: string;
}

/** More than any group has of keys and places; callers from that many networks at once are an attack. */
const mostBuckets = 10_000;

/** The limits of what may come in, and what is left of each. */
export class InboundLimits {
  readonly #buckets: TokenBuckets;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#buckets = new TokenBuckets(clock, mostBuckets);
  }

  /**
   * Takes one request from each limit in turn and sets the `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers-10). Throws
   * `too_many_requests` at the first where none is left. A limit of 0 a minute is none.
   */
  take(limits: readonly Limit[], reply: Pick<FastifyReply, 'headers'>): void {
    const policies: string[] = [];
    const states: string[] = [];
    for (const limit of limits.filter(({ perMinute }) => perMinute > 0)) {
      const taken = this.#buckets.take(`${limit.name} ${limit.of}`, limit);
      policies.push(policyItem(limit));
      states.push(stateItem(limit, taken));
      reply.headers({ 'ratelimit-policy': policies.join(', '), ratelimit: states.join(', ') });
      if (taken.isAllowed) continue;
      const { refusal, internal } = limit;
      const retryAfterMs = taken.msToNext;
      throw new RankdError('too_many_requests', refusal, { retryAfterMs, ...(internal !== undefined && { internal }) });
    }
  }
}

function policyItem({ name, perMinute, burst }: Limit): string {
  return `"${name}";q=${burst};w=${Math.ceil((burst / perMinute) * 60)}`;
}

function stateItem({ name }: Limit, { left, msToFull }: Taken): string {
  return `"${name}";r=${left};t=${Math.ceil(msToFull / 1000)}`;
}
