import { isIP, isIPv4 } from 'node:net';
import type { FastifyReply } from 'fastify';
import ipaddr from 'ipaddr.js';
import { RankdError, type RefusalDetails } from '../base/errors.ts';
import type { LimitsConfig } from '../config/config.ts';
import type { Key, Scope } from '../core/model.ts';
import type { Clock, LimitStore, SharedLimit } from '../ports/index.ts';
import { type Rate, type Taken, TokenBuckets, taken } from './token-buckets.ts';

/** The message to a caller over a limit, by the limit's name in the `RateLimit` headers. */
const refusals = {
  verify: (perMinute) => `This key may be verified ${perMinute} times a minute; slow down.`,
  place: (perMinute) => `With this key, a place may send ${perMinute} rank requests a minute; slow down.`,
  rank: (perMinute) => `This key may send ${perMinute} rank requests a minute; slow down.`,
  'failed-place': () => 'Too many requests for places that are not on the whitelist of this key; check the whitelist.',
  discord: () => 'Too many commands; wait a minute.',
  'failed-auth': () => 'Too many requests from this address had no valid key; check the key.',
} satisfies Record<string, (perMinute: number) => string>;

export interface Limit extends Rate {
  name: keyof typeof refusals;
  /** The key, place of a key, or network that it counts. */
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

/** The limits on each operation of an accepted key, in the order of the checks. */
export const limitsOf: Record<Scope, LimitsOf> = {
  verify: ({ verifyPerMinute }, { key: { id } }) => [
    { name: 'verify', of: id, perMinute: verifyPerMinute, burst: verifyPerMinute },
  ],
  rank: limitsOfChanges,
  suspend: limitsOfChanges,
  roles: limitsOfChanges,
};

/** The limit on requests of one network without an accepted key. */
export function failedAuthLimit({ failedAuthPerMinute: perMinute }: LimitsConfig, address: string | undefined): Limit {
  return { name: 'failed-auth', of: networkOf(address), perMinute, burst: perMinute };
}

/** The limit on the commands of one person in Discord, over all keys. */
export function discordLimit(discordId: string): Limit {
  return { name: 'discord', of: discordId, perMinute: 30, burst: 30 };
}

/**
 * The limit on requests with one key for places that are not on its whitelist. It stops a caller from trying many
 * places.
 */
export function failedPlaceLimit({ failedAuthPerMinute: perMinute }: LimitsConfig, { id }: Key): Limit {
  return { name: 'failed-place', of: id, perMinute, burst: perMinute };
}

/**
 * The part of an address that identifies a caller: a whole IPv4 address, but only the /64 network of an IPv6 address, because one caller
 * has all of that network. The address is undefined if the caller has disconnected, and can be any text from a proxy.
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

/** Per limit. A group has fewer keys and places; callers from more networks at once are an attack. */
const maxBuckets = 10_000;

interface Counter {
  buckets: TokenBuckets;
  /** The latest policy header and its rate. The next one is usually the same, and building it costs more than counting. */
  latest: Rate & { policy: string };
}

/** Counts requests against the limits, alone or together with all nodes that share its store. */
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
   * Takes one request from each limit in turn and sets the `RateLimit` headers (draft-ietf-httpapi-ratelimit-headers-10).
   * Returns a refusal with `details` at the first exhausted limit. A rate of 0 means no limit.
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

  /** True if `takeOfAll` must count a change with all nodes before rankd accepts it. */
  get isShared(): boolean {
    return this.#store !== undefined;
  }

  /** Like `take`, but exact: all nodes together accept no more than the limits allow. Throws `store_unavailable`. */
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

  /** Stops the reports to the other nodes. */
  async close(): Promise<void> {
    await this.#reporter?.close();
  }
}

/** A node reports its counts this often, for at most this many limits at once. */
const reportEveryMs = 250;
const maxReported = 1_000;
/** Callers can make up networks, so at most this many limits wait for a report. Further ones count on this node alone. */
const maxWaiting = 10_000;

/** Reports the requests that this node has accepted by its own count to the nodes that share its store. */
export class LimitReporter {
  readonly #store: LimitStore;
  readonly #clock: Pick<Clock, 'sleep' | 'monotonic'>;
  readonly #correct: (limit: SharedLimit, left: number) => void;
  readonly #spent = new Map<string, { limit: SharedLimit; count: number; since: number }>();
  readonly #closing = new AbortController();
  #reporting: Promise<void> | undefined;

  /** Calls `correct` with the rest of a limit, less the requests accepted since the report. */
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
      // The store does not respond: this node continues with its own count, and reports it later.
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

/** The `RateLimit` headers of an answer, and the refusal if a limit is exhausted. */
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
