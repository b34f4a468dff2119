import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { RankdError } from '../../base/errors.ts';
import { maxReasonLength } from '../../core/model.ts';

/** The largest body of a POST, in bytes. */
export const maxBodyBytes = 16_384;

/** The valid origins of requests to the page. */
export interface Origins {
  /** Every host, with its port, by which browsers may name the page. */
  hosts: ReadonlySet<string>;
  /** The page's own origins, e.g. `http://127.0.0.1:7266`. */
  origins: ReadonlySet<string>;
}

/** The origins of a page that listens on this port, and is reached at `url` through a proxy or a tunnel. */
export function originsOf({ port, url }: { port: number; url: string | undefined }): Origins {
  const names = ['127.0.0.1', 'localhost', '[::1]'];
  const own = names.map((name) => new URL(`http://${name}:${port}`));
  const all = url === undefined ? own : [...own, new URL(url)];
  return { hosts: new Set(all.map(({ host }) => host)), origins: new Set(all.map(({ origin }) => origin)) };
}

/**
 * Refuses a request for another host: another site may have changed its name to point to this address (DNS rebinding).
 */
export function requireOwnHost({ headers }: Pick<IncomingMessage, 'headers'>, { hosts }: Origins): void {
  if (hosts.has((headers.host ?? '').toLowerCase())) return;
  throw RankdError.withoutStack('wrong_host', 'The page is not known by this name.', {
    hint: 'use the address that `rankd dashboard` prints; behind a proxy, set dashboard.url in rankd.yaml',
  });
}

/**
 * Refuses requests from another page. A cookie with SameSite=Strict is not enough: a page on another port of this
 * machine is the same site. A form sends `Origin: null` under this page's referrer policy, so the origin counts only if
 * a client does not send `Sec-Fetch-Site`.
 */
export function requireOwnPage(
  { method, headers }: Pick<FastifyRequest, 'method' | 'headers'>,
  { origins }: Origins,
): void {
  const site = headers['sec-fetch-site'];
  const isReading = method === 'GET' || method === 'HEAD';
  if (site === 'same-origin' || (isReading && site === 'none')) return;
  if (site === undefined && (isReading || origins.has(String(headers.origin)))) return;
  throw RankdError.withoutStack('not_from_page', 'This was not sent by the page itself.', {
    hint: 'open the page itself: rankd dashboard',
  });
}

/** The value of a cookie; `undefined` if it is missing, or sent twice, which may be an attempt to replace it. */
export function cookieIn({ headers }: Pick<IncomingMessage, 'headers'>, name: string): string | undefined {
  const parts = (headers.cookie ?? '').split(';').map((part) => part.trim());
  const values = parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}

/** The fields of a JSON body. Throws `invalid_request`: another page's form can't send JSON. */
export function fieldsOf({ headers, body }: FastifyRequest): Record<string, unknown> {
  if (!/^application\/json\s*(;|$)/i.test(headers['content-type'] ?? ''))
    throw new RankdError('invalid_request', 'Send the body as application/json.');
  const fields = parsed(body as Buffer);
  if (fields === null || typeof fields !== 'object' || Array.isArray(fields))
    throw new RankdError('invalid_request', 'The body must be a JSON object.');
  return fields as Record<string, unknown>;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new RankdError('invalid_request', 'The body is not JSON.');
  }
}

type Fields = Record<string, unknown>;

/** A text that names something. */
export function textIn(fields: Fields, name: string, max: number): string {
  const value = fields[name];
  if (typeof value === 'string' && value !== '' && value.length <= max) return value;
  throw new FieldError(name, `must be a text of 1 to ${max} characters`);
}

export function isTrueOf(fields: Fields, name: string): boolean {
  const value = fields[name] ?? false;
  if (typeof value === 'boolean') return value;
  throw new FieldError(name, 'must be true or false');
}

export function userIdIn({ user }: Fields): number {
  if (Number.isSafeInteger(user) && (user as number) > 0) return user as number;
  throw new FieldError('user', 'must be a user id: a whole number above 0');
}

export function reasonIn({ reason }: Fields): string | undefined {
  if (reason === undefined || reason === null || reason === '') return undefined;
  if (typeof reason === 'string' && [...reason].length <= maxReasonLength) return reason;
  throw new FieldError('reason', `must be a text of at most ${maxReasonLength} characters`);
}

export function changeIdsIn({ ids }: Fields, max: number): string[] {
  if (!Array.isArray(ids)) throw new FieldError('ids', 'must be a list of ids of rank changes');
  return checkedIds('ids', ids, max);
}

/** Ids of rank changes, each once. The store checks if they exist. */
export function checkedIds(name: string, ids: unknown[], max: number): string[] {
  const isId = (id: unknown) => typeof id === 'string' && /^chg_\w{1,40}$/.test(id);
  if (ids.length === 0 || ids.length > max || !ids.every(isId))
    throw new FieldError(name, `must be 1 to ${max} ids of rank changes, such as chg_VbflntX4kQ2mX7Lp`);
  return [...new Set(ids as string[])];
}

/** A mistake in one field of a query or a body; the page shows it next to the field. */
export class FieldError extends RankdError {
  readonly field: string;

  constructor(field: string, what: string) {
    super('invalid_request', `\`${field}\` ${what}.`);
    this.field = field;
  }
}
