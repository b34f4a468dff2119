import { randomInt } from 'node:crypto';
import { deadlineIn } from '../../base/clock.ts';
import { connectionFailure } from '../../base/connection-cause.ts';
import { asRankdError, RankdError } from '../../base/errors.ts';
import { type OutboundProxy, type UnusedProxy, unusedProxyFor, usedProxyFor } from '../../base/outbound-proxy.ts';
import type { Surprises } from '../../base/surprises.ts';
import { exponentialBackOff } from '../../base/time.ts';
import type { CallContext, Clock, WriteLease } from '../../ports/index.ts';
import { unboundedLease } from '../../ports/platform.ts';
import { type Answer, fetchAnswer, keyMask, parseRateLimit, parseRetryAfter } from './answer.ts';
import type { Gate } from './gate.ts';
import type { Operation } from './operations.ts';
import {
  isBusy,
  isLocked,
  isTransient,
  platformError,
  surprisesIn,
  unavailable,
  unfamiliar,
  unknownOutcome,
  unreached,
} from './platform-error.ts';
import type { Reach } from './reach.ts';
import { deviations, type SchemaName } from './schemas.ts';
import { RequestNotSent, WriteSender } from './send-write.ts';
import type { ReservedSlot } from './wait-queue.ts';
import { lockMs } from './write-spacing.ts';

export interface UpstreamOptions {
  /** e.g. `https://apis.roblox.com`. */
  baseUrl: string;
  /** Sent as `x-api-key` with every request to `baseUrl` that is not anonymous. */
  apiKey?: string;
  clock: Clock;
  fetch: typeof globalThis.fetch;
  surprises: Surprises;
  reach: Reach;
  proxy?: OutboundProxy | undefined;
  /** True if a read whose response has the wrong shape is retried until its deadline. The default is true. */
  retriesMisshapen?: boolean | undefined;
  tuning?: Partial<UpstreamTuning>;
}

export interface UpstreamTuning {
  perTryTimeoutMs: number;
  /** The maximum wait before the second attempt. It doubles with each further attempt, up to `maxBackOffMs`. */
  backOffMs: number;
  maxBackOffMs: number;
  /**
   * An attempt starts only with at least this much time left; with less, a write's outcome would be unknown. If the
   * platform responds more slowly, most attempts need more time: see `UpstreamClient.minTryMs`.
   */
  minTryMs: number;
  maxBodyBytes: number;
}

export const defaultTuning: UpstreamTuning = {
  perTryTimeoutMs: 5_000,
  backOffMs: 250,
  maxBackOffMs: 4_000,
  minTryMs: 100,
  maxBodyBytes: 1024 * 1024,
};

export interface UpstreamRequest<T> {
  operation: Operation;
  gate: Gate;
  /** The slot reserved at the gate for the first attempt. */
  slot?: ReservedSlot | undefined;
  method: 'GET' | 'POST';
  /** Path and query, percent-encoded. */
  path: string;
  body?: unknown;
  isWrite?: boolean;
  /** Called if the platform refuses the request because another request holds a lock. */
  onLocked?: () => void;
  /** True if the key must not be sent as a header. */
  isAnonymous?: boolean;
  isTriedOnce?: boolean;
  /** Differences between the response and this schema are recorded but tolerated. */
  schema: SchemaName;
  /**
   * Converts the response's JSON to the result. Throws if the JSON has the wrong shape. For a write whose response is
   * not JSON, `json` is `undefined`.
   */
  parse(json: unknown): T;
}

/** A timeout after less than this proves nothing about the platform. */
const conclusiveMs = 2_000;

interface Failure {
  error: RankdError;
  isTransient: boolean;
  /**
   * True for failures that are worth only one retry because they rarely clear up by themselves, such as an unknown host
   * name.
   */
  isRetriedOnce?: boolean;
  /** True if the gate already delays the next attempt. */
  isGated?: boolean;
  minWaitMs?: number;
}

/**
 * Sends requests to one of the platform's hosts. Paces them, sets a timeout for each attempt, and retries until the
 * deadline. Throws only RankdError.
 */
export class UpstreamClient {
  readonly #baseUrl: string;
  readonly #apiKey: string | undefined;
  readonly #masked: (text: string) => string;
  readonly #clock: Clock;
  readonly #fetch: typeof globalThis.fetch;
  readonly #writes: WriteSender;
  readonly #surprises: Surprises;
  readonly #reach: Reach;
  readonly #unusedProxy: UnusedProxy | undefined;
  readonly #usedProxy: string | undefined;
  readonly #retriesMisshapen: boolean;
  readonly #tuning: UpstreamTuning;

  /** Throws `config_invalid` if the key can't be sent as a header; `fetch` would throw an error that quotes the key. */
  constructor({ baseUrl, apiKey, clock, fetch, surprises, reach, proxy, retriesMisshapen, tuning }: UpstreamOptions) {
    if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
      throw new RankdError('config_invalid', 'The Roblox key is empty or has characters that no Roblox key contains.', {
        hint: 'put the key alone, on one line, into the file that platform.api_key_file names, or into RANKD_PLATFORM_API_KEY',
      });
    }
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
    this.#apiKey = apiKey;
    this.#masked = apiKey === undefined ? (text) => text : keyMask(apiKey);
    this.#clock = clock;
    this.#fetch = fetch;
    this.#writes = new WriteSender(clock);
    this.#surprises = surprises;
    this.#reach = reach;
    this.#unusedProxy = unusedProxyFor(baseUrl, proxy);
    this.#usedProxy = usedProxyFor(baseUrl, proxy);
    this.#retriesMisshapen = retriesMisshapen ?? true;
    this.#tuning = { ...defaultTuning, ...tuning };
  }

  /** Returns the minimum time that an attempt needs, based on how long the platform currently takes to respond. */
  minTryMs(gate: Gate): number {
    return Math.max(this.#tuning.minTryMs, gate.answerMs);
  }

  /**
   * Sends the request, and retries it until it succeeds, is permanently refused, or runs out of time or attempts.
   * Retries are safe, because every operation that rankd uses is idempotent. Throws `outcome_unknown` if an attempt may
   * have applied the write but no response confirmed it.
   */
  async request<T>(request: UpstreamRequest<T>, call: CallContext): Promise<T> {
    let last: RankdError | undefined;
    let unknown: RankdError | undefined;
    let readMs = 0;
    for (let tries = 0; ; tries += 1) {
      await this.#enter(request, { ...call, deadlineAt: call.deadlineAt - readMs }).catch((late) => {
        const isStillBusy = last?.code === 'platform_busy' && late.code === 'platform_busy'; // `late` is more recent
        throw unknown ?? (isStillBusy ? late : (last ?? late));
      });
      const sentAt = this.#clock.monotonic();
      const result = await this.#try(request, call);
      if ('value' in result) return result.value;
      last = result.error;
      if (call.readsAfter && last.code === 'platform_busy')
        readMs = Math.max(this.minTryMs(request.gate), this.#clock.monotonic() - sentAt);
      if (last.code === 'outcome_unknown') unknown ??= last;
      if (
        !result.isTransient ||
        request.isTriedOnce ||
        (result.isRetriedOnce && tries > 0) ||
        !(result.isGated || (await this.#backOff(request, { tries, minMs: result.minWaitMs ?? 0 }, call)))
      )
        throw unknown ?? last;
    }
  }

  /**
   * Waits for admission. A write that belongs to a change that has begun can start closer to its deadline, because
   * there was enough time when its slots were reserved.
   */
  #enter({ gate, slot }: UpstreamRequest<unknown>, call: CallContext): Promise<void> {
    const minTryMs = call.reservation === undefined ? this.minTryMs(gate) : this.#tuning.minTryMs;
    return gate.enter({ ...call, deadlineAt: call.deadlineAt - minTryMs }, slot);
  }

  async #try<T>(request: UpstreamRequest<T>, call: CallContext): Promise<{ value: T } | Failure> {
    const { gate, isWrite = false } = request;
    const lease = isWrite ? ((await call.fence?.().catch(asRankdError)) ?? unboundedLease) : undefined;
    if (lease instanceof RankdError) {
      gate.leave();
      return { error: lease, isTransient: false };
    }
    let answer: Answer | undefined;
    const sentAt = this.#clock.monotonic();
    try {
      answer = await this.#send(request, call, lease);
    } catch (cause) {
      if (cause instanceof RequestNotSent && cause.cause instanceof RankdError)
        return { error: cause.cause, isTransient: false };
      return this.#failed(request, cause, { call, sentAt });
    } finally {
      if (answer?.status !== 429) gate.leave(answer && parseRateLimit(answer.headers));
      else if (gate.leaveRefused(parseRateLimit(answer.headers)))
        this.#noteSurprises(request, ['429 although the rate limit was not used up']);
    }
    const { status, body, headers } = answer;
    this.#reach.answered(this.#baseUrl, headers);
    this.#noteSurprises(request, surprisesIn({ status, body: this.#masked(body ?? '') }));
    if (status < 200 || status >= 300) return body === undefined ? unreadable(isWrite) : this.#refused(request, answer);
    gate.accepted();
    return this.#parsed(request, body);
  }

  /**
   * Parses a successful response. For a read, an unreadable response counts as a transient failure; with
   * `retriesMisshapen`, so does a response of the wrong shape. A write fails only if `parse` throws.
   */
  #parsed<T>(request: UpstreamRequest<T>, body: string | undefined): { value: T } | Failure {
    const { parse, schema, isWrite = false } = request;
    const json = jsonOf(body);
    const flaws = json === undefined ? ['no JSON'] : deviations(json, schema);
    if (body !== undefined) this.#noteSurprises(request, flaws);
    if (json === undefined && !isWrite) return unreadable(isWrite);
    try {
      return { value: parse(json) };
    } catch (thrown) {
      if (isWrite) return unreadable(isWrite, thrown);
      const relevant = flaws.filter((flaw) => !flaw.endsWith('unknown field'));
      return { error: unfamiliar(relevant, thrown), isTransient: this.#retriesMisshapen };
    }
  }

  #failed<T>(
    request: UpstreamRequest<T>,
    cause: unknown,
    { call, sentAt }: { call: CallContext; sentAt: number },
  ): Failure {
    const isUnsent = cause instanceof RequestNotSent;
    const failure = connectionFailure(cause, {
      at: new URL(this.#baseUrl).host,
      unusedProxy: this.#unusedProxy,
      usedProxy: this.#usedProxy,
    });
    const error = unreached(failure, cause);
    const now = this.#clock.monotonic();
    const isCutShort =
      failure.cause === 'timed_out' && now - sentAt < Math.min(conclusiveMs, this.#tuning.perTryTimeoutMs);
    const isAborted = call.signal.aborted && now < call.deadlineAt;
    if (!isCutShort && !isAborted) this.#reach.failed(this.#baseUrl, error);
    if (failure.cause === 'web_page') this.#noteSurprises(request, ['no JSON']);
    if (!request.isWrite || isUnsent) return { error, isTransient: true, isRetriedOnce: failure.isPermanent };
    return { error: unknownOutcome(failure.words, { cause, connection: failure.cause }), isTransient: true };
  }

  #noteSurprises({ operation }: UpstreamRequest<unknown>, surprises: string[]): void {
    for (const what of surprises) this.#surprises.note(operation, what);
  }

  /** Sends the request. A write is sent only while its lease lasts. */
  async #send(
    { gate, method, path, body, isAnonymous }: UpstreamRequest<unknown>,
    call: CallContext,
    lease: WriteLease | undefined,
  ): Promise<Answer> {
    const { perTryTimeoutMs, maxBodyBytes } = this.#tuning;
    using timeout = deadlineIn(this.#clock, Math.min(perTryTimeoutMs, call.deadlineAt - this.#clock.monotonic()));
    const headers: Record<string, string> = { accept: 'application/json', 'cache-control': 'no-cache' };
    if (this.#apiKey !== undefined && !isAnonymous) headers['x-api-key'] = this.#apiKey;
    if (body !== undefined) headers['content-type'] = 'application/json';
    const signal = AbortSignal.any([call.signal, timeout.signal]);
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const url = `${this.#baseUrl}${path}`;
    const sentAt = this.#clock.monotonic();
    const answer = await (lease === undefined
      ? fetchAnswer(this.#fetch, url, { method, headers, redirect: 'error', signal, ...text }, maxBodyBytes)
      : this.#writes.send({ url, headers, body: text.body ?? '', maxBodyBytes, signal }, lease));
    gate.answered(this.#clock.monotonic() - sentAt);
    return answer;
  }

  #refused({ gate, isWrite = false, onLocked }: UpstreamRequest<unknown>, answer: Answer): Failure {
    const { status, headers } = answer;
    const refusal = { status, body: this.#masked(answer.body ?? '') };
    const isTemporary = isTransient(refusal);
    // A permanent refusal concerns only this request, so its `retry-after` must not delay others.
    const retryAfterMs = isTemporary ? parseRetryAfter(headers.get('retry-after'), this.#clock.now()) : undefined;
    const isGated = isBusy(refusal) || retryAfterMs !== undefined;
    if (isGated) gate.close(Math.max(retryAfterMs ?? 0, backOffMs(this.#tuning, gate.refusals)));
    if (isLocked(refusal)) onLocked?.();
    const minWaitMs = isLocked(refusal) ? lockMs : 0;
    return {
      error: platformError({ ...refusal, retryAfterMs }, { isWrite }),
      isTransient: isTemporary,
      isGated,
      minWaitMs,
    };
  }

  /** Waits before the next attempt. Returns false if no time is left for one. */
  async #backOff(
    { gate }: UpstreamRequest<unknown>,
    { tries, minMs }: { tries: number; minMs: number },
    call: CallContext,
  ): Promise<boolean> {
    const waitMs = Math.max(backOffMs(this.#tuning, tries), minMs);
    if (this.#clock.monotonic() + waitMs + this.minTryMs(gate) > call.deadlineAt) return false;
    try {
      await this.#clock.sleep(waitMs, call.signal);
      return true;
    } catch {
      return false; // aborted
    }
  }
}

/**
 * Returns a random wait in milliseconds; `tries` counts the retries so far. Full jitter spreads out the retries of many
 * calls.
 */
export function backOffMs(tuning: UpstreamTuning, tries: number): number {
  return randomInt(Math.ceil(exponentialBackOff(tuning.backOffMs, tuning.maxBackOffMs)(tries)) + 1);
}

/**
 * Returns `undefined` if the body is not JSON. Drops the parser's error, because it quotes the response, which can
 * contain the key.
 */
function jsonOf(body = ''): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function unreadable(isWrite: boolean, cause?: unknown): Failure {
  const what = 'the response could not be read';
  return { error: isWrite ? unknownOutcome(what, { cause }) : unavailable(what, undefined, cause), isTransient: true };
}
