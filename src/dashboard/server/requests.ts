import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { isRankdError, RankdError } from '../../base/errors.ts';
import { parseDuration } from '../../base/time.ts';
import { maxReasonLength } from '../../core/model.ts';

export const maxBodyBytes = 65_536;

export interface Origins {
  /** The accepted `Host` headers, including the port unless it is the default one for the scheme. */
  hosts: ReadonlySet<string>;
  /** The page's own origins, e.g. `http://127.0.0.1:7266`. */
  origins: ReadonlySet<string>;
}

/** Returns the origins of a page on this port. `url` is the page's address through a proxy or a tunnel. */
export function originsOf({ port, url }: { port: number; url: string | undefined }): Origins {
  const names = ['127.0.0.1', 'localhost', '[::1]'];
  const own = names.map((name) => new URL(`http://${name}:${port}`));
  const all = url === undefined ? own : [...own, new URL(url)];
  return { hosts: new Set(all.map(({ host }) => host)), origins: new Set(all.map(({ origin }) => origin)) };
}

/** Refuses foreign host names, because another site can point its host name at this address (DNS rebinding). */
export function requireOwnHost({ headers }: Pick<IncomingMessage, 'headers'>, { hosts }: Origins): void {
  if (hosts.has((headers.host ?? '').toLowerCase())) return;
  throw RankdError.withoutStack('wrong_host', 'The page is not served under this host name.', {
    hint: 'use the address that `rankd dashboard` prints; behind a proxy, set dashboard.url in rankd.yaml',
  });
}

/**
 * Refuses requests from other pages. SameSite=Strict is not enough, because a page on another port of this machine
 * counts as the same site. Checks `Origin` only if `Sec-Fetch-Site` is absent, because under this page's referrer
 * policy, forms send `Origin: null`.
 */
export function requireOwnPage(
  { method, headers }: Pick<FastifyRequest, 'method' | 'headers'>,
  { origins }: Origins,
): void {
  const site = headers['sec-fetch-site'];
  const isReading = method === 'GET' || method === 'HEAD';
  if (site === 'same-origin' || (isReading && site === 'none')) return;
  if (site === undefined && (isReading || origins.has(String(headers.origin)))) return;
  throw RankdError.withoutStack('not_from_page', 'This request did not come from the page itself.', {
    hint: 'run `rankd dashboard`, and open the link that it prints',
  });
}

/**
 * Returns a cookie's value, or `undefined` if the cookie is missing or was sent twice, which can be an attempt to
 * replace it.
 */
export function cookieIn({ headers }: Pick<IncomingMessage, 'headers'>, name: string): string | undefined {
  const parts = (headers.cookie ?? '').split(';').map((part) => part.trim());
  const values = parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1));
  return values.length === 1 ? values[0] : undefined;
}

/** Parses a JSON body. Requires JSON's content type, because a form on another page can't send it. */
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

/** Parses a field's value. Throws `FieldError`. */
export type Field<T> = (value: unknown, name: string) => T;

export function text(max: number): Field<string> {
  return (value, name) => {
    const trimmed = typeof value === 'string' ? value.trim() : '';
    if (trimmed !== '' && trimmed.length <= max) return trimmed;
    throw new FieldError(name, `must have 1 to ${max} characters`);
  };
}

export function optional<T>(field: Field<T>): Field<T | undefined> {
  return (value, name) => (value === undefined || value === null || value === '' ? undefined : field(value, name));
}

export function orNone<T>(field: Field<T>): Field<T | null> {
  return (value, name) => (value === null ? null : field(value, name));
}

export const flag: Field<boolean> = (value = false, name) => {
  if (typeof value === 'boolean') return value;
  throw new FieldError(name, 'must be true or false');
};

export function oneOf<T extends string>(values: readonly T[]): Field<T> {
  return (value, name) => {
    const known = values.find((one) => one === value);
    if (known !== undefined) return known;
    throw new FieldError(name, `must be one of ${values.join(', ')}`);
  };
}

export function someOf<T>(field: Field<T>): Field<T[]> {
  return (value, name) => {
    if (!Array.isArray(value) || value.length > 100) throw new FieldError(name, 'must be a list of at most 100 values');
    return [...new Set(value.map((one) => field(one, name)))];
  };
}

export function id(what: string): Field<number> {
  return (value, name) => {
    if (Number.isSafeInteger(value) && (value as number) > 0) return value as number;
    throw new FieldError(name, `must be ${what}: a whole number above 0`);
  };
}

export const reason: Field<string | undefined> = optional((value, name) => {
  if (typeof value === 'string' && [...value].length <= maxReasonLength) return value;
  throw new FieldError(name, `can have at most ${maxReasonLength} characters`);
});

/** Parses a duration into milliseconds. */
export const length: Field<number> = (value, name) => {
  const ms = typeof value === 'string' ? parseDuration(value.trim()) : undefined;
  if (ms !== undefined && ms <= maxLengthMs) return ms;
  throw new FieldError(name, 'must be a duration such as 3d, 12h or 30m');
};

/** A hundred years, so that every format can show the resulting date. */
const maxLengthMs = 36_500 * 86_400_000;

export function changeIds(max: number): Field<string[]> {
  return (value, name) => {
    if (Array.isArray(value)) return checkedIds(name, value, max);
    throw new FieldError(name, 'must be a list of ids of rank changes');
  };
}

/** Checks the syntax of rank change ids and removes duplicates. The store checks that the changes exist. */
export function checkedIds(name: string, ids: unknown[], max: number): string[] {
  const isId = (id: unknown) => typeof id === 'string' && /^chg_\w{1,40}$/.test(id);
  if (ids.length === 0 || ids.length > max || !ids.every(isId))
    throw new FieldError(name, `must be 1 to ${max} ids of rank changes, such as chg_VbflntX4kQ2mX7Lp`);
  return [...new Set(ids as string[])];
}

/** An error about one field in a query or a body. The page shows it next to the field. */
export class FieldError extends RankdError {
  readonly field: string;

  constructor(field: string, refusal: string | RankdError) {
    if (typeof refusal === 'string') super('invalid_request', `\`${field}\` ${refusal}.`);
    else super(refusal.code, refusal.message, refusal);
    this.field = field;
  }
}

/** Runs `work`, and adds the field to any refusal that it throws. */
export async function inField<T>(field: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isRankdError(error) ? new FieldError(field, error) : error;
  }
}
