import { isIP, isIPv4 } from 'node:net';
import type { FastifyReply } from 'fastify';
import ipaddr from 'ipaddr.js';
import { RankdError } from '../base/errors.ts';
import type { RefusalDetails } from '../base/refusal-details.ts';
import type { LimitsConfig } from '../config/config.ts';
import type { Key, Scope } from '../core/model.ts';
import type { Clock, LimitStore, SharedLimit } from '../ports/index.ts';
import { type Rate, type Taken, TokenBuckets, taken } from './token-buckets.ts';
import { ToldLimits } from './told-limits.ts';

/** What a caller is told if nothing is left of a limit, by the limit's name in the `RateLimit` headers. */
const refusals = {
  verify: (perMinute) => `This key may be verified ${perMinute} times a minute; slow down.`,
  place: (perMinute) => `With this key, a place may send ${perMinute} rank requests a minute; slow down.`,
  rank: (perMinute) => `This key may send ${perMinute} rank requests a minute; slow down.`,
  'failed-place': () =>
    'Too many requests for places that are not on the whitelist of this key have come; check the whitelist.',
  'failed-auth': () => 'Too many requests without a key that is accepted have come from this address; check the key.',
} satisfies Record<string, (perMinute: number) => string>;

export interface Limit extends Rate {
  name: keyof typeof refusals;
  /** What is counted: a key, a place of a key, or a network. */
  of: string;
}

type LimitsOf = (config: LimitsConfig, from: { key: Key; placeId: number | undefined }) => Limit[];

// The place comes first: if its limit refuses, the key's other places lose nothing.
const limitsOfChanges: LimitsOf = ({ rankPerMinute, rankBurst, placePerMinute }, { key, placeId }) => {
  const { id, ratePerMinute = rankPerMinute } = key;
  const burstOf = (perMinute: number) => rankBurst || perMinute;
  const placeBurst = Math.min(burstOf(placePerMinute), placePerMinute);
  const keyBurst = burstOf(ratePerMinute);
  return [
    { name: 'place', of: `${id} ${placeId}`, perMinute: placePerMinute, burst: placeBurst },
    {
      name: 'rank',
      of: id,
      perMinute: ratePerMinute,
      burst: key.ratePerMinute === undefined ? keyBurst : Math.min(keyBurst, ratePerMinute),
    },
  ];
};

/** The limits on each operation of a key that is accepted, in the order in which they are checked. */
export const limitsOf: Record<Scope, LimitsOf> = {
  verify: ({ verifyPerMinute }, { key: { id } }) => [
    { name: 'verify', of: id, perMinute: verifyPerMinute, burst: verifyPerMinute },
  ],
  rank: limitsOfChanges,
  suspend: limitsOfChanges,
};

/** The limit on requests of one network without a key that is accepted. */
export function failedAuthLimit({ failedAuthPerMinute: perMinute }: LimitsConfig, address: string | undefined): Limit {
  return { name: 'failed-auth', of: networkOf(address), perMinute, burst: perMinute };
}

/** The limit on requests with one key for places that are not on its whitelist: nobody shall try them all. */
export function failedPlaceLimit({ failedAuthPerMinute: perMinute }: LimitsConfig, { id }: Key): Limit {
  return { name: 'failed-place', of: id, perMinute, burst: perMinute };
}

/**
 * The part of an address that tells callers apart: a whole IPv4 address, but only the /64 network of an IPv6 address, because
 * one caller has all of those. The address is undefined if the caller has hung up, and any text if a proxy made it up.
 */
export function networkOf(address = ''): string {
  if (isIPv4(address)) return address; // parsing it would take as long as all the rest of a refusal
  const [withoutZone = ''] = address.split('%', 1);
  if (isIP(withoutZone) === 0) return withoutZone.slice(0, maxNameLength);
  const parsed = ipaddr.process(withoutZone);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const groups = parsed.parts.slice(0, 4).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
}

/** The length of the longest IPv6 address. */
const maxNameLength = 45;

/** For each limit. A group has fewer keys and places, and callers from more networks at once are an attack. */
const maxBuckets = 10_000;

interface Counter {
  buckets: TokenBuckets;
  /** The latest policy header and the rate it is for. The next one is mostly the same, and to build it costs more than to count. */
  latest: Rate & { policy: string };
}

/** Counts requests against the limits: alone, or together with all nodes that share its store. */
export class Throttle {
  readonly #counters: Record<Limit['name'], Counter>;
  readonly #store: LimitStore | undefined;
  readonly #told: ToldLimits | undefined;

  constructor(clock: Pick<Clock, 'monotonic' | 'sleep'>, store?: LimitStore | undefined) {
    this.#store = store;
    this.#told =
      store &&
      new ToldLimits({ store, clock }, ({ name }, left) => {
        const [limit = '', ...of] = name.split(' ');
        this.#counters[limit as Limit['name']].buckets.correct(of.join(' '), left);
      });
    const counter = (): Counter => ({
      buckets: new TokenBuckets(clock, maxBuckets),
      latest: { perMinute: 0, burst: 0, policy: '' },
    });
    this.#counters = {
      verify: counter(),
      place: counter(),
      rank: counter(),
      'failed-place': counter(),
      'failed-auth': counter(),
    };
  }

  /**
   * Takes one request from each limit in turn and sets the `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers-10).
   * Returns a refusal with `details` at the first limit of which nothing is left. 0 a minute means that there is no limit.
   */
  take(
    limits: readonly Limit[],
    reply: Pick<FastifyReply, 'header'>,
    details?: RefusalDetails,
  ): RankdError | undefined {
    const answer = new LimitAnswer(reply, details);
    for (const limit of limits) {
      if (limit.perMinute === 0) continue;
      const counter = this.#counters[limit.name];
      const result = counter.buckets.take(limit.of, limit);
      if (result.isAllowed) this.#told?.note(sharedLimit(limit));
      if (!answer.add(counter, limit, result)) break;
    }
    return answer.end();
  }

  /** True if a change has to be counted with all nodes before it is let in, by `takeOfAll`. */
  get isShared(): boolean {
    return this.#store !== undefined;
  }

  /** As `take`, exactly: of all nodes together, no more are let in than the limits allow. Throws `store_unavailable`. */
  async takeOfAll(
    limits: readonly Limit[],
    reply: Pick<FastifyReply, 'header'>,
    details?: RefusalDetails,
  ): Promise<RankdError | undefined> {
    const counted = limits.filter(({ perMinute }) => perMinute !== 0);
    const results = (await this.#store?.takeShared(counted.map(sharedLimit))) ?? [];
    const answer = new LimitAnswer(reply, details);
    for (const [index, result] of results.entries()) {
      const limit = counted[index];
      if (limit !== undefined) answer.add(this.#counters[limit.name], limit, taken(result, limit));
    }
    return answer.end();
  }

  /** Tells nobody any more what it has let through. */
  async close(): Promise<void> {
    await this.#told?.close();
  }
}

function sharedLimit({ name, of, perMinute, burst }: Limit): SharedLimit {
  return { name: `${name} ${of}`, perMinute, burst };
}

/** What a caller is told of the limits, in the `RateLimit` headers, and the refusal if nothing is left of one. */
class LimitAnswer {
  readonly #reply: Pick<FastifyReply, 'header'>;
  readonly #details: RefusalDetails | undefined;
  #policy = '';
  #state = '';
  #refusal: RankdError | undefined;

  constructor(reply: Pick<FastifyReply, 'header'>, details: RefusalDetails | undefined) {
    this.#reply = reply;
    this.#details = details;
  }

  /** False if the request is refused. */
  add(counter: Counter, limit: Limit, result: Taken): boolean {
    this.#policy = listed(this.#policy, policyItem(counter, limit));
    this.#state = listed(this.#state, stateItem(limit, result));
    if (result.isAllowed) return true;
    const message = refusals[limit.name](limit.perMinute);
    const details = this.#details;
    this.#refusal = RankdError.withoutStack('too_many_requests', message, { retryAfterMs: result.msToNext, details });
    return false;
  }

  end(): RankdError | undefined {
    if (this.#policy !== '') this.#reply.header('ratelimit-policy', this.#policy).header('ratelimit', this.#state);
    return this.#refusal;
  }
}

function listed(items: string, item: string): string {
  return items === '' ? item : `${items}, ${item}`;
}

function policyItem(counter: Counter, { name, perMinute, burst }: Limit): string {
  if (counter.latest.perMinute !== perMinute || counter.latest.burst !== burst) {
    const policy = `"${name}";q=${burst};w=${Math.ceil((burst / perMinute) * 60)}`;
    counter.latest = { perMinute, burst, policy };
  }
  return counter.latest.policy;
}

function stateItem({ name }: Limit, { left, msToFull }: Taken): string {
  return `"${name}";r=${left};t=${Math.ceil(msToFull / 1000)}`;
}
