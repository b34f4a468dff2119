import { rankBody } from './answers.ts';
import { type Answer, type Sent, send } from './send.ts';

export interface StartOptions {
  args?: string[];
  env?: Record<string, string>;
}

/** A daemon started by `rankd serve --json`, with methods that send requests to it. */
export abstract class Serving implements AsyncDisposable {
  /** e.g. `http://127.0.0.1:41503` */
  readonly url: string;
  /** `null` if metrics are off. */
  readonly metricsUrl: string | null;
  abstract readonly log: string;

  /** `greeting`: the document that the daemon printed once it was listening. */
  constructor(greeting: string) {
    const { url, metricsUrl } = JSON.parse(greeting) as { url: string; metricsUrl: string | null };
    this.url = url;
    this.metricsUrl = metricsUrl;
  }

  post(path: string, sent?: Sent): Promise<Answer> {
    return send(this.url + path, { method: 'POST', ...sent });
  }

  /** Requests a rank change with `rankBody(rest)` from place 1. */
  rank(key: string, rest?: Record<string, unknown>, sent?: Sent): Promise<Answer> {
    return this.post('/v1/ranker?placeid=1', { key, body: rankBody(rest), ...sent });
  }

  /** Verifies the key for a place, by default 1. */
  verify(key: string, placeid = 1): Promise<Answer> {
    return this.post('/v1/apikey', { key, body: { placeid } });
  }

  /** Sends `signal`. Resolves with the exit code, or `null` if a signal killed the process. */
  abstract stop(signal?: NodeJS.Signals): Promise<number | null>;

  abstract [Symbol.asyncDispose](): Promise<void>;
}
