import { once } from 'node:events';
import http, { type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { expectDescribed } from './described-answers.ts';

export interface Sent {
  method?: string;
  key?: string | undefined;
  /** A string or a buffer is sent unchanged, anything else as JSON. */
  body?: unknown;
  /** `undefined` omits a header. With a body, `content-type` is JSON by default. */
  headers?: Record<string, string | undefined>;
}

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** The parsed body; `undefined` if it is empty or not JSON. */
  json: unknown;
}

/** Starts a POST request whose body the test writes, and ignores its errors. */
export function startPost(url: string, key: string, headers: OutgoingHttpHeaders = {}): http.ClientRequest {
  const request = http.request(url, { method: 'POST', headers: { authorization: `Bearer ${key}`, ...headers } });
  return request.on('error', () => undefined);
}

/** Sends a request as a game server would, and checks the response against the OpenAPI document. */
export async function send(url: string, { method, key, body, headers }: Sent): Promise<Answer> {
  const given = {
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...headers,
  };
  const present = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const request = http.request(url, { ...(method !== undefined && { method }), headers: present });
  request.end(typeof body === 'string' || Buffer.isBuffer(body) || body === undefined ? body : JSON.stringify(body));
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const received = await text(response);
  const status = response.statusCode ?? 0;
  expectDescribed({ method: request.method, url, status, headers: response.headers, text: received });
  const isJson = response.headers['content-type']?.startsWith('application/json') && received !== '';
  return { status, headers: response.headers, text: received, json: isJson ? JSON.parse(received) : undefined };
}
