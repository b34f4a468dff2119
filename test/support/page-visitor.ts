import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { safeHeaders } from '../../src/dashboard/server/page-server.ts';
import type { CliHome } from './run-cli.ts';

export interface PageAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read documents of every kind
  json: any;
}

interface Sending {
  method?: string;
  body?: unknown;
  headers?: Record<string, string | undefined>;
}

/** A simulated browser on a daemon's page. It checks every response for the headers that protect the page. */
export class PageVisitor {
  /** e.g. `http://127.0.0.1:7266` */
  readonly origin: string;
  readonly #base: string;
  /** The link's fragment, without `#`. */
  readonly secret: string;
  cookie = '';
  token = '';

  constructor(link: string) {
    const { origin, pathname, hash } = new URL(link);
    this.origin = origin;
    this.#base = pathname.replace(/\/login$/, '');
    this.secret = hash.slice(1);
  }

  /** Returns a visitor who has a link from `rankd dashboard` but has not logged in yet. */
  static async withLink(home: CliHome): Promise<PageVisitor> {
    return new PageVisitor((await home.json<{ url: string }>('dashboard')).url);
  }

  static async loggedIn(home: CliHome): Promise<PageVisitor> {
    const visitor = await PageVisitor.withLink(home);
    expect(await visitor.logIn()).toMatchObject({ status: 200 });
    return visitor;
  }

  async logIn(secret = this.secret): Promise<PageAnswer> {
    const answer = await this.post('/api/login', { link: secret });
    if (answer.status !== 200) return answer;
    this.cookie = String(answer.headers['set-cookie']).split(';')[0] ?? '';
    this.token = answer.json.session.token;
    return answer;
  }

  get(path: string, headers: Sending['headers'] = {}): Promise<PageAnswer> {
    return this.send(path, { headers });
  }

  /** Returns the document at a path. Fails the test if there is none. */
  async read(path: string): Promise<PageAnswer['json']> {
    const answer = await this.get(path);
    expect(answer, path).toMatchObject({ status: 200, json: { v: 1 } });
    return answer.json;
  }

  post(path: string, body: unknown = {}, headers: Sending['headers'] = {}): Promise<PageAnswer> {
    return this.send(path, { method: 'POST', body, headers });
  }

  /** Sends a request as the page's script would. `headers` overrides headers; a value of `undefined` omits one. */
  async send(path: string, { method = 'GET', body, headers = {} }: Sending): Promise<PageAnswer> {
    const response = await this.#open(path, {
      method,
      headers,
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const received = await text(response);
    const isJson = String(response.headers['content-type']).startsWith('application/json') && received !== '';
    expectSafe(response.headers);
    return {
      ...{ status: response.statusCode ?? 0, headers: response.headers, text: received },
      json: isJson ? JSON.parse(received) : undefined,
    };
  }

  async listen(headers: Sending['headers'] = {}): Promise<EventReader> {
    const response = await this.#open('/api/events', { method: 'GET', headers });
    expectSafe(response.headers);
    return new EventReader(response);
  }

  async #open(path: string, { method, headers = {}, body }: Sending & { body?: string }): Promise<IncomingMessage> {
    const all = {
      cookie: this.cookie,
      'x-rankd-token': this.token,
      'sec-fetch-site': 'same-origin',
      ...(body !== undefined && { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
      ...headers,
    };
    const given = Object.entries(all).filter(([, value]) => value !== undefined && value !== '');
    const request = http.request(this.origin + this.#base + path, { method, headers: Object.fromEntries(given) });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  }
}

class EventReader implements Disposable {
  readonly status: number;
  readonly events: string[] = [];
  text = '';
  isOver = false;
  readonly #response: IncomingMessage;

  constructor(response: IncomingMessage) {
    this.#response = response;
    this.status = response.statusCode ?? 0;
    response.setEncoding('utf8').on('data', (chunk: string) => {
      this.text += chunk;
      const names = [...this.text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name ?? '');
      this.events.splice(0, this.events.length, ...names);
    });
    response.once('close', () => {
      this.isOver = true;
    });
    response.on('error', () => undefined);
  }

  /** Stops reading, so that further data fills the operating system's buffer. */
  stopReading(): void {
    this.#response.pause();
  }

  [Symbol.dispose](): void {
    this.#response.destroy();
  }
}

/** Checks the headers that protect the page. `immutable` is for files with a hash in their name. */
function expectSafe(headers: IncomingHttpHeaders): void {
  const { 'cache-control': _, ...rest } = safeHeaders;
  expect(headers).toMatchObject(rest);
  expect(headers['cache-control']).toMatch(/^(no-store|public, max-age=31536000, immutable)$/);
  expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
}
