import { setTimeout as delay } from 'node:timers/promises';
import { type Bench, benchRanks, place } from './bench.ts';
import type { Answered } from './compare.ts';
import type { SeededRandom } from './random.ts';

interface RankRequest {
  rankeeId: number;
  newRankId: number;
  /** The request's name; if the request is repeatable, also its idempotency key. */
  command: string;
  isRepeatable: boolean;
}

interface AnyUrl {
  anyUrl: () => string;
  answerWithinMs: number;
}

/** Simulated game servers that request rank changes and record the responses. */
export class Callers {
  readonly answered: Answered[] = [];
  /** The number of responses, keyed by status. Requests without a response are counted as status 0. */
  readonly answers = new Map<number, number>();
  readonly #bench: Bench;
  readonly #random: SeededRandom;
  /** Repeatable requests that got no response, a 409 or a 503, and are to be retried. */
  readonly #unanswered: RankRequest[] = [];
  #requestCount = 0;

  constructor(bench: Bench, random: SeededRandom) {
    this.#bench = bench;
    this.#random = random;
  }

  get acknowledged(): number {
    return this.answers.get(200) ?? 0;
  }

  /**
   * Requests changes to `members`, one after another, until `stop` is aborted. With a fixed URL, also stops once a
   * request gets no response. Otherwise, calls `anyUrl` for each request.
   */
  async run(url: string | AnyUrl, { members, stop }: { members: number[]; stop?: AbortSignal }): Promise<void> {
    while (!stop?.aborted) {
      const again = this.#unanswered.shift();
      const request = again ?? this.#newRequest(members);
      const sendsTwice = again === undefined && request.isRepeatable && this.#random.next() < 0.2;
      const status =
        typeof url === 'string' ? await this.send(url, request) : await this.#sendToAny(url, request, sendsTwice);
      if (status === 0 && typeof url === 'string') return;
      if (status !== 200) await delay(50); // avoids flooding a service that refuses requests
    }
  }

  /** Sends a request to any daemon; if `sendsTwice`, sends it twice at the same time, as an impatient caller would. */
  async #sendToAny({ anyUrl, answerWithinMs }: AnyUrl, request: RankRequest, sendsTwice: boolean): Promise<number> {
    const sent = () => this.send(anyUrl(), request, AbortSignal.timeout(answerWithinMs));
    const [status] = await Promise.all(sendsTwice ? [sent(), sent()] : [sent()]);
    return status;
  }

  /** Requests a change to one of `members`. Resolves with the status, or with 0 if there is no response. */
  async ask(url: string, members: number[]): Promise<number> {
    return this.send(url, this.#newRequest(members));
  }

  async send(url: string, request: RankRequest, signal?: AbortSignal): Promise<number> {
    const answer = await post(url, this.#bench.secret, request, signal).catch(() => ({ status: 0, changeId: '' }));
    const { status, changeId } = answer;
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1);
    if (status !== 0) this.answered.push({ ...request, status, changeId });
    if (
      request.isRepeatable &&
      (status === 0 || status === 409 || status === 503) &&
      !this.#unanswered.includes(request)
    )
      this.#unanswered.push(request);
    return status;
  }

  #newRequest(members: number[]): RankRequest {
    this.#requestCount += 1;
    return {
      rankeeId: this.#random.pick(members),
      newRankId: this.#random.pick(benchRanks),
      command: `request ${this.#requestCount}`,
      isRepeatable: this.#random.next() < 0.5,
    };
  }
}

async function post(
  url: string,
  secret: string,
  { rankeeId, newRankId, command, isRepeatable }: RankRequest,
  signal: AbortSignal | undefined,
) {
  const response = await fetch(`${url}/v1/ranker?placeid=${place}`, {
    method: 'POST',
    ...(signal && { signal }),
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      ...(isRepeatable && { 'idempotency-key': command }),
    },
    body: JSON.stringify({ rankerName: 'Ann', rankerId: 0, rankeeName: 'Bob', rankeeId, newRankId, command }),
  });
  await response.text();
  return { status: response.status, changeId: response.headers.get('x-rank-change') ?? '' };
}
