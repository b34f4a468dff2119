import type { Agent, AgentOptions, ClientRequest, IncomingMessage } from 'node:http';
import { released } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import { http, https } from '../../base/node-modules.ts';
import { version } from '../../base/version.ts';
import type { Clock, WriteLease } from '../../ports/index.ts';
import { type Answer, readText } from './answer.ts';

/**
 * A write starts only with at least this much of its lease left; otherwise, its response could arrive after the lease
 * ends.
 */
const minLeaseMs = 1_000;
/** A connection that has been idle for this long is not reused, because the peer may have closed it. */
const idleMs = 4_000;

export interface WriteRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
  maxBodyBytes: number;
  signal: AbortSignal;
}

/** Thrown if nothing was sent to the platform. */
export class RequestNotSent extends Error {}

/**
 * Sends writes with `node:http` or `node:https`, because `fetch` does not reveal when it sends a request. The lease is
 * checked immediately before the bytes are written to the open connection, so a process that was suspended while
 * connecting does not write after its lease ends.
 */
export class WriteSender {
  readonly #clock: Clock;
  #agents: { http: Agent; https: Agent } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws `RequestNotSent`, with the reason as its cause, if it is certain that nothing was sent. */
  async send({ url, headers, body, maxBodyBytes, signal }: WriteRequest, lease: WriteLease): Promise<Answer> {
    const ended = new AbortController();
    let isSent = false;
    const found = Promise.withResolvers<IncomingMessage>();
    const request = this.#request(url, { ...headers, 'content-length': String(Buffer.byteLength(body)) }, signal);
    request.on('response', found.resolve);
    request.on('error', found.reject);
    request.on('close', () => found.reject(new Error('the connection ended without a response'))); // e.g. status 101
    onceConnected(request, () => {
      if (lease.leftMs() < minLeaseMs) return void request.destroy(withoutLease());
      isSent = true;
      request.end(body);
      if (lease.leftMs() <= 0) lease.noteLate();
    });
    void this.#endWithLease(request, lease, ended.signal);
    try {
      const response = await found.promise;
      const { statusCode = 0 } = response;
      if (statusCode >= 300 && statusCode < 400) throw new TypeError('the response is a redirect');
      const text = await readText(response, maxBodyBytes).catch(() => undefined);
      return { status: statusCode, headers: headersOf(response), body: text };
    } catch (cause) {
      request.destroy();
      throw isSent ? cause : new RequestNotSent('the request was not sent', { cause });
    } finally {
      ended.abort(released);
    }
  }

  #request(url: string, headers: Record<string, string>, signal: AbortSignal): ClientRequest {
    const isSecure = url.startsWith('https:');
    // Node.js sets `proxyEnv` if NODE_USE_ENV_PROXY is set; writes then use the proxy, as `fetch` does. Node.js 22.14
    // does not have this option.
    const { proxyEnv }: AgentOptions & { proxyEnv?: NodeJS.ProcessEnv } = https().globalAgent.options;
    const options = { keepAlive: true, timeout: idleMs, proxyEnv };
    this.#agents ??= { http: new (http().Agent)(options), https: new (https().Agent)(options) };
    const { request } = isSecure ? https() : http();
    const agent = isSecure ? this.#agents.https : this.#agents.http;
    return request(url, { method: 'POST', headers: { 'user-agent': `rankd/${version}`, ...headers }, agent, signal });
  }

  /** Aborts a request when the lease ends, unless the lease is extended first. */
  async #endWithLease(request: ClientRequest, lease: WriteLease, ended: AbortSignal): Promise<void> {
    try {
      for (let leftMs = lease.leftMs(); leftMs > 0; leftMs = lease.leftMs()) {
        if (leftMs === Number.POSITIVE_INFINITY) return;
        await this.#clock.sleep(leftMs, ended);
      }
      request.destroy(withoutLease());
    } catch {
      // the request has ended
    }
  }
}

function onceConnected(request: ClientRequest, use: () => void): void {
  request.on('socket', (socket) => {
    if (!socket.connecting && !('secureConnecting' in socket && socket.secureConnecting)) use();
    else socket.once('encrypted' in socket ? 'secureConnect' : 'connect', use);
  });
}

function withoutLease(): RankdError {
  return new RankdError(
    'store_unavailable',
    'This daemon has lost contact with its database, so it cannot change ranks.',
    {
      hint: 'check that the PostgreSQL server responds; the daemon continues as soon as it does',
      retryAfterMs: 1_000,
    },
  );
}

function headersOf({ headers }: IncomingMessage): Headers {
  const flat = Object.entries(headers).map(([name, value]) => [name, String(value ?? '')] as [string, string]);
  return new Headers(flat);
}
