import { deadlineIn } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import type { CallContext, Clock } from '../../ports/index.ts';
import { type Answer, exchange } from './exchange.ts';
import type { Place } from './line.ts';
import { keyMask } from './mask-key.ts';
import { wasNeverSent } from './never-sent.ts';
import { isPassing, platformError, unavailable, unknownOutcome } from './platform-error.ts';
import type { RateGate } from './rate-gate.ts';
import { parseRateLimit, parseRetryAfter } from './retry-after.ts';
import { backOffMs, defaultTuning, type UpstreamTuning } from './tuning.ts';

export interface UpstreamOptions {
  /** e.g. `https://apis.roblox.com`. */
  baseUrl: string;
  /** Sent as `x-api-key` with every request to `baseUrl` that is not anonymous. */
  apiKey?: string;
  clock: Clock;
  fetch: typeof globalThis.fetch;
  tuning?: Partial<UpstreamTuning>;
}

export interface UpstreamRequest<T> {
  gate: RateGate;
  /** The turn that the gate has promised, for the first try. */
  promised?: Place | undefined;
  method: 'GET' | 'POST';
  /** Path and query, percent-encoded. */
  path: string;
  body?: unknown;
  /** True where the request changes something on the platform. */
  isWrite?: boolean;
  /** True where the key must not go along. */
  isAnonymous?: boolean;
  /** Turns the parsed answer into what is asked for; throws where it has not the right shape. */
  read(json: unknown): T;
}

/** What one try came to, where it was no answer. */
interface Failure {
  error: RankdError;
  isPassing: boolean;
  /** True where the gate makes the next try wait already. */
  isGated?: boolean;
}

/** Sends requests to one host of the platform: paced, timed, tried again within the deadline. Throws only RankdError. */
export class UpstreamClient {
  readonly #baseUrl: string;
  readonly #apiKey: string | undefined;
  readonly #masked: (text: string) => string;
  readonly #clock: Clock;
  readonly #fetch: typeof globalThis.fetch;
  readonly #tuning: UpstreamTuning;

  /** Throws `config_invalid` where the key can't be a header: `fetch` would quote it in its error. */
  constructor({ baseUrl, apiKey, clock, fetch, tuning }: UpstreamOptions) {
    if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey)) {
      throw new RankdError('config_invalid', 'The platform API key is empty or has characters that no key has.', {
        hint: 'put the key alone, on one line, into the file that platform.api_key_file names',
      });
    }
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
    this.#apiKey = apiKey;
    this.#masked = apiKey === undefined ? (text) => text : keyMask(apiKey);
    this.#clock = clock;
    this.#fetch = fetch;
    this.#tuning = { ...defaultTuning, ...tuning };
  }

  /** No try is begun with less time left, in milliseconds. */
  get shortestTryMs(): number {
    return this.#tuning.shortestTryMs;
  }

  /**
   * Sends the request until it is answered, refused for good, or out of time: every operation of the platform that rankd
   * uses may be repeated. A write that any try may have carried out, and that no answer confirms, is `outcome_unknown`.
   */
  async request<T>(request: UpstreamRequest<T>, call: CallContext): Promise<T> {
    let last: RankdError | undefined;
    let unknown: RankdError | undefined;
    for (let tries = 0; ; tries += 1) {
      await this.#enter(request, call).catch((late) => {
        const isBudgetSpent = last?.code === 'platform_busy' && late.code === 'platform_busy'; // it knows for how long
        throw unknown ?? (isBudgetSpent ? late : (last ?? late));
      });
      const result = await this.#try(request, call);
      if ('value' in result) return result.value;
      last = result.error;
      if (last.code === 'outcome_unknown') unknown ??= last;
      if (!result.isPassing || !(result.isGated || (await this.#backOff(tries, call)))) throw unknown ?? last;
    }
  }

  #enter({ gate, promised }: UpstreamRequest<unknown>, call: CallContext): Promise<void> {
    return gate.enter({ ...call, deadlineAt: call.deadlineAt - this.#tuning.shortestTryMs }, promised);
  }

  async #try<T>(request: UpstreamRequest<T>, call: CallContext): Promise<{ value: T } | Failure> {
    const { gate, isWrite = false } = request;
    let answer: Answer | undefined;
    try {
      answer = await this.#send(request, call);
    } catch (cause) {
      return unanswered(cause, isWrite);
    } finally {
      gate.leave(answer && parseRateLimit(answer.headers));
    }
    if (answer.status < 200 || answer.status >= 300) return this.#refused(request, answer);
    gate.accepted();
    return readAnswer(request, answer);
  }

  async #send({ method, path, body, isAnonymous }: UpstreamRequest<unknown>, call: CallContext): Promise<Answer> {
    const { perTryTimeoutMs, maxBodyBytes } = this.#tuning;
    using limit = deadlineIn(this.#clock, Math.min(perTryTimeoutMs, call.deadlineAt - this.#clock.monotonic()));
    const headers: Record<string, string> = { accept: 'application/json', 'cache-control': 'no-cache' };
    if (this.#apiKey !== undefined && !isAnonymous) headers['x-api-key'] = this.#apiKey;
    if (body !== undefined) headers['content-type'] = 'application/json';
    const init: RequestInit = {
      method,
      headers,
      redirect: 'error',
      signal: AbortSignal.any([call.signal, limit.signal]),
    };
    if (body !== undefined) init.body = JSON.stringify(body);
    return await exchange(this.#fetch, `${this.#baseUrl}${path}`, init, maxBodyBytes);
  }

  #refused({ gate, isWrite = false }: UpstreamRequest<unknown>, answer: Answer): Failure {
    const { status, headers } = answer;
    const body = this.#masked(answer.body);
    const mayPass = isPassing(status); // what is refused for good is about one request, and holds up no other
    const retryAfterMs = mayPass ? parseRetryAfter(headers.get('retry-after'), this.#clock.now()) : undefined;
    const isGated = status === 429 || retryAfterMs !== undefined;
    if (isGated) gate.close(Math.max(retryAfterMs ?? 0, backOffMs(this.#tuning, gate.refusals)));
    return { error: platformError({ status, body, retryAfterMs }, { isWrite }), isPassing: mayPass, isGated };
  }

  /** Waits before the next try; false where there is no time for one. */
  async #backOff(tries: number, call: CallContext): Promise<boolean> {
    const waitMs = backOffMs(this.#tuning, tries);
    if (this.#clock.monotonic() + waitMs + this.#tuning.shortestTryMs > call.deadlineAt) return false;
    try {
      await this.#clock.sleep(waitMs, call.signal);
      return true;
    } catch {
      return false; // called off
    }
  }
}

function unanswered(cause: unknown, isWrite: boolean): Failure {
  const what = isCalledOff(cause) ? 'no answer in time' : 'the connection failed';
  const error = isWrite && !wasNeverSent(cause) ? unknownOutcome(what, cause) : unavailable(what, undefined, cause);
  return { error, isPassing: true };
}

/** An answer of the wrong shape tells nothing: a proxy's page, a body cut short. */
function readAnswer<T>({ read, isWrite }: UpstreamRequest<T>, { body }: Answer): { value: T } | Failure {
  try {
    return { value: read(JSON.parse(body)) };
  } catch (thrown) {
    const what = 'the answer could not be read';
    const cause = thrown instanceof SyntaxError ? undefined : thrown; // which quotes the answer, and that can begin with the key
    return { error: isWrite ? unknownOutcome(what, cause) : unavailable(what, undefined, cause), isPassing: true };
  }
}

/** As `AbortController.abort` has it. */
function isCalledOff(cause: unknown): boolean {
  return cause instanceof Error && cause.name === 'AbortError';
}
