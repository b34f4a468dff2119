import { isIP, isIPv4 } from 'node:net';
import type { FastifyReply } from 'fastify';
import ipaddr from 'ipaddr.js';
import { RankdError, type RefusalDetails } from '../base/errors.ts';
import type { LimitsConfig } from '../config/config.ts';
import type { Key, Scope } from '../core/model.ts';
import type { Clock, LimitStore, SharedLimit } from '../ports/index.ts';
import { type Rate, type Taken, TokenBuckets, taken } from './token-buckets.ts';

/** Each limit's refusal message, keyed by the limit's name in the `RateLimit` headers. */
const refusals = {
  verify: (perMinute) => `Verifications and reads with this key are limited to ${perMinute} a minute; slow down.`,
  place: (perMinute) => `Rank requests from one place with this key are limited to ${perMinute} a minute; slow down.`,
  rank: (perMinute) => `Rank requests with this key are limited to ${perMinute} a minute; slow down.`,
  'failed-place': () => 'Too many requests for places that are not on the whitelist of this key; check the whitelist.',
  discord: () => 'Too many commands; wait a minute.',
  'failed-auth': () => 'Too many requests from this address had no valid key; check the key.',
} satisfies Record<string, (perMinute: number) => string>;

export interface Limit extends Rate {
  name: keyof typeof refusals;
  /** Identifies whose requests are counted: a key, a key and place, a network or a Discord person. */
  of: string;
}

type LimitsOf = (config: LimitsConfig, from: { key: Key; placeId: number | undefined }) => Limit[];

// The place comes first, because a request that its limit refuses must not count against the key's limit.
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

/** The limits on requests with an accepted key, keyed by scope, in the order in which rankd checks them. */
export const limitsOf: Record<Scope, LimitsOf> = {
  verify: ({ verifyPerMinute }, { key: { id } }) => [
    { name: 'verify', of: id, perMinute: verifyPerMinute, burst: verifyPerMinute },
  ],
  rank: limitsOfChanges,
  suspend: limitsOfChanges,
  roles: limitsOfChanges,
};

export function failedAuthLimit({ failedAuthPerMinute: perMinute }: LimitsConfig, address: string | undefined): Limit {
  return { name: 'failed-auth', of: networkOf(address), perMinute, burst: perMinute };
}

/** Returns the limit on one Discord person's commands, across all keys. */
export function discordLimit(discordId: string): Limit {
  return { name: 'discord', of: discordId, perMinute: 30, burst: 30 };
}

/**
 * Returns the limit on a key's requests for places that are not on its whitelist, so that callers cannot try out many
 * places.
 */
export function failedPlaceLimit({ failedAuthPerMinute: perMinute }: LimitsConfig, { id }: Key): Limit {
  return { name: 'failed-place', of: id, perMinute, burst: perMinute };
}

/**
 * Returns the part of an address that identifies a caller: a whole IPv4 address, or the /64 network of an IPv6 address,
 * because a single caller usually controls that whole network. `address` is undefined if the caller has disconnected.
 */
export function networkOf(address = ''): string {
  if (isIPv4(address)) return address; // parsing it would take as long as the rest of a refusal
  const [withoutZone = ''] = address.split('%', 1);
  if (isIP(withoutZone) === 0) return withoutZone.slice(0, maxNameLength);
  const parsed = ipaddr.process(withoutZone);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  const groups = parsed.parts.slice(0, 4).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
}

/** The length of the longest IPv6 address. */
const maxNameLength = 45;

/**
 * The maximum number of buckets per limit. No group has this many keys or places, and requests from more networks than
 * this are an attack.
 */
const maxBuckets = 10_000;

interface Counter {
  buckets: TokenBuckets;
  /**
   * Caches the latest policy header, because the next request usually needs it again and building it costs more than
   * counting.
   */
  latest: Rate & { policy: string };
}

/** Counts requests against the limits, on this node or across all nodes that share its store. */
export class Throttle {
  readonly #counters: Record<Limit['name'], Counter>;
  readonly #store: LimitStore | undefined;
  readonly #reporter: LimitReporter | undefined;

  constructor(clock: Pick<Clock, 'monotonic' | 'sleep'>, store?: LimitStore | undefined) {
    this.#store = store;
    this.#reporter =
      store &&
      new LimitReporter({ store, clock }, ({ name }, left) => {
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
      discord: counter(),
    };
  }

  /**
   * Counts a request against each limit in turn and sets the `RateLimit` headers
   * (draft-ietf-httpapi-ratelimit-headers-10). At the first exhausted limit, returns a refusal with `details`. A rate
   * of 0 means no limit.
   */
  take(
    limits: readonly Limit[],
    reply: Pick<FastifyReply, 'header'> | undefined,
    details?: RefusalDetails,
  ): RankdError | undefined {
    const answer = new LimitAnswer(reply, details);
    for (const limit of limits) {
      if (limit.perMinute === 0) continue;
      const counter = this.#counters[limit.name];
      const result = counter.buckets.take(limit.of, limit);
      if (result.isAllowed) this.#reporter?.note(sharedLimit(limit));
      if (!answer.add(counter, limit, result)) break;
    }
    return answer.end();
  }

  /** True if several nodes can share the limits. Changes must then be counted with `takeOfAll`. */
  get isShared(): boolean {
    return this.#store !== undefined;
  }

  /** Works like `take`, but counts the request exactly, across all nodes. Throws `store_unavailable`. */
  async takeOfAll(
    limits: readonly Limit[],
    reply: Pick<FastifyReply, 'header'> | undefined,
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

  async close(): Promise<void> {
    await this.#reporter?.close();
  }
}

const reportEveryMs = 250;
const maxReported = 1_000;
/**
 * Caps the number of limits that have unreported requests, because callers can send from any number of networks. Beyond
 * this cap, requests count only on this node.
 */
const maxWaiting = 10_000;

/** Reports to the store the requests that this node has counted locally. The store counts them for all nodes. */
export class LimitReporter {
  readonly #store: LimitStore;
  readonly #clock: Pick<Clock, 'sleep' | 'monotonic'>;
  readonly #correct: (limit: SharedLimit, left: number) => void;
  readonly #spent = new Map<string, { limit: SharedLimit; count: number; since: number }>();
  readonly #closing = new AbortController();
  #reporting: Promise<void> | undefined;

  /**
   * After each report, calls `correct` with each limit's remaining tokens, minus the requests counted in the meantime.
   */
  constructor(
    { store, clock }: { store: LimitStore; clock: Pick<Clock, 'sleep' | 'monotonic'> },
    correct: (limit: SharedLimit, left: number) => void,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#correct = correct;
  }

  note(limit: SharedLimit): void {
    const spent = this.#spent.get(limit.name);
    if (spent !== undefined) spent.count += 1;
    else if (this.#spent.size < maxWaiting)
      this.#spent.set(limit.name, { limit, count: 1, since: this.#clock.monotonic() });
    this.#reporting ??= this.#reportSoon();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#reporting;
  }

  async #reportSoon(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#spent.size > 0 && !signal.aborted) {
      await this.#clock.sleep(reportEveryMs, signal).catch(() => undefined);
      if (!signal.aborted) await this.#report();
    }
    this.#reporting = undefined;
  }

  async #report(): Promise<void> {
    const reported = [...this.#spent.values()].slice(0, maxReported);
    const now = this.#clock.monotonic();
    for (const { limit } of reported) this.#spent.delete(limit.name);
    try {
      const left = await this.#store.spend(
        reported.map(({ limit, count, since }) => ({ ...limit, count, agoMs: now - since })),
      );
      for (const [index, { limit }] of reported.entries()) {
        this.#correct(limit, (left[index] ?? limit.burst) - (this.#spent.get(limit.name)?.count ?? 0));
      }
    } catch {
      // While the store does not respond, this node counts on its own and reports the counts later.
      for (const { limit, count, since } of reported) {
        const later = this.#spent.get(limit.name)?.count ?? 0;
        this.#spent.set(limit.name, { limit, count: count + later, since });
      }
    }
  }
}

function sharedLimit({ name, of, perMinute, burst }: Limit): SharedLimit {
  return { name: `${name} ${of}`, perMinute, burst };
}

/** Builds a response's `RateLimit` headers, and the refusal if a limit is exhausted. */
class LimitAnswer {
  readonly #reply: Pick<FastifyReply, 'header'> | undefined;
  readonly #details: RefusalDetails | undefined;
  #policy = '';
  #state = '';
  #refusal: RankdError | undefined;

  constructor(reply: Pick<FastifyReply, 'header'> | undefined, details: RefusalDetails | undefined) {
    this.#reply = reply;
    this.#details = details;
  }

  /** Returns false if the limit refuses the request. */
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
    if (this.#policy !== '') this.#reply?.header('ratelimit-policy', this.#policy).header('ratelimit', this.#state);
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
