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
   * Takes one request from each limit in turn and sets the `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers-10). Returns
   * the refusal at the first where none is left. A limit of 0 a minute is none.
   */
  take(limits: readonly Limit[], reply: Pick<FastifyReply, 'header'>): RankdError | undefined {
    let policy = '';
    let state = '';
    for (const limit of limits) {
      if (limit.perMinute === 0) continue;
      const taken = this.#buckets.take(`${limit.name} ${limit.of}`, limit);
      policy = listed(policy, policyItem(limit));
      state = listed(state, stateItem(limit, taken));
      reply.header('ratelimit-policy', policy).header('ratelimit', state);
      if (taken.isAllowed) continue;
      const { refusal, internal } = limit;
      const retryAfterMs = taken.msToNext;
      const details = { retryAfterMs, ...(internal !== undefined && { internal }) };
      return RankdError.withoutStack('too_many_requests', refusal, details);
    }
    return undefined;
  }
}

function listed(items: string, item: string): string {
  return items === '' ? item : `${items}, ${item}`;
}

function policyItem({ name, perMinute, burst }: Limit): string {
  return `"${name}";q=${burst};w=${Math.ceil((burst / perMinute) * 60)}`;
}

function stateItem({ name }: Limit, { left, msToFull }: Taken): string {
  return `"${name}";r=${left};t=${Math.ceil(msToFull / 1000)}`;
}
