import type { FastifyReply } from 'fastify';
import { RankdError } from '../base/errors.ts';
import type { RefusalDetails } from '../base/refusal-details.ts';
import type { Clock } from '../ports/index.ts';
import { type Rate, type Taken, TokenBuckets } from './token-buckets.ts';

/** What is told where none is left, by the names of the limits in the `RateLimit` headers. */
const refusals = {
  verify: (perMinute) => `This key may be verified ${perMinute} times a minute; slow down.`,
  place: (perMinute) => `With this key, a place may send ${perMinute} rank requests a minute; slow down.`,
  rank: (perMinute) => `This key may send ${perMinute} rank requests a minute; slow down.`,
  'failed-auth': () => 'Too many requests without a key that is accepted have come from this address; check the key.',
} satisfies Record<string, (perMinute: number) => string>;

export interface Limit extends Rate {
  name: keyof typeof refusals;
  /** What it is counted for: a key, a place of a key, an address. */
  of: string;
  /** For log and audit: what else is wrong with the request. */
  details?: RefusalDetails | undefined;
}

/** Of each limit: more than any group has of keys and places; callers from that many networks at once are an attack. */
const maxBuckets = 10_000;

interface Counter {
  buckets: TokenBuckets;
  /** The policy that was told last, and of which rate: mostly the next one's too, and to put it together costs more than to count. */
  told: Rate & { policy: string };
}

/** The limits of what may come in, and what is left of each. */
export class InboundLimits {
  readonly #counters: Record<Limit['name'], Counter>;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    const counter = (): Counter => ({
      buckets: new TokenBuckets(clock, maxBuckets),
      told: { perMinute: 0, burst: 0, policy: '' },
    });
    this.#counters = { verify: counter(), place: counter(), rank: counter(), 'failed-auth': counter() };
  }

  /**
   * Takes one request from each limit in turn and sets the `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers-10). Returns
   * the refusal at the first where none is left. A limit of 0 a minute is none.
   */
  take(limits: readonly Limit[], reply: Pick<FastifyReply, 'header'>): RankdError | undefined {
    let policy = '';
    let state = '';
    let refusal: RankdError | undefined;
    for (const limit of limits) {
      if (limit.perMinute === 0) continue;
      const counter = this.#counters[limit.name];
      const taken = counter.buckets.take(limit.of, limit);
      policy = listed(policy, policyItem(counter, limit));
      state = listed(state, stateItem(limit, taken));
      if (taken.isAllowed) continue;
      refusal = refusalOf(limit, taken);
      break;
    }
    if (policy !== '') reply.header('ratelimit-policy', policy).header('ratelimit', state);
    return refusal;
  }
}

function refusalOf({ name, perMinute, details }: Limit, { msToNext: retryAfterMs }: Taken): RankdError {
  return RankdError.withoutStack('too_many_requests', refusals[name](perMinute), { retryAfterMs, details });
}

function listed(items: string, item: string): string {
  return items === '' ? item : `${items}, ${item}`;
}

function policyItem(counter: Counter, { name, perMinute, burst }: Limit): string {
  if (counter.told.perMinute !== perMinute || counter.told.burst !== burst) {
    const policy = `"${name}";q=${burst};w=${Math.ceil((burst / perMinute) * 60)}`;
    counter.told = { perMinute, burst, policy };
  }
  return counter.told.policy;
}

function stateItem({ name }: Limit, { left, msToFull }: Taken): string {
  return `"${name}";r=${left};t=${Math.ceil(msToFull / 1000)}`;
}
