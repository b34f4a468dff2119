import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { RankdError } from '../../base/errors.ts';
import type { Clock } from '../../ports/index.ts';

const maxStreams = 10;
const heartbeatEveryMs = 20_000;
/** rankd disconnects a page that has more unread bytes than this. */
const maxUnreadBytes = 16_384;

/**
 * Notifies pages of changes with server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
 */
export class Streams {
  readonly #open = new Set<ServerResponse>();
  #count = 0;

  get size(): number {
    return this.#open.size;
  }

  /** Starts a stream. Throws `too_many_streams`. */
  add(response: ServerResponse, headers: OutgoingHttpHeaders): void {
    if (this.#open.size >= maxStreams)
      throw RankdError.withoutStack('too_many_streams', `${maxStreams} pages are already open.`, {
        hint: 'close one of them',
        retryAfterMs: 10_000,
      });
    this.#open.add(response);
    response.once('close', () => this.#open.delete(response));
    response.writeHead(200, headers);
    response.write(`retry: 2000\n\n${this.#event('hello')}`);
  }

  notify(views: Iterable<string>): void {
    for (const view of views) this.#write(this.#event(view));
  }

  end(response: ServerResponse, why: 'logout' | 'bye'): void {
    if (this.#open.delete(response)) response.end(this.#event(why));
  }

  endAll(why: 'logout' | 'bye'): void {
    for (const response of this.#open) this.end(response, why);
  }

  /** Writes regularly, so that proxies do not close idle streams. */
  async sendHeartbeats(clock: Clock, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      await clock.sleep(heartbeatEveryMs, stop).catch(() => undefined);
      if (!stop.aborted) this.#write(': still here\n\n');
    }
  }

  #event(name: string): string {
    this.#count += 1;
    return `event: ${name}\ndata: ${this.#count}\n\n`;
  }

  #write(text: string): void {
    for (const response of this.#open) {
      if (response.writableLength > maxUnreadBytes) response.destroy();
      else response.write(text);
    }
  }
}
