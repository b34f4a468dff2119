import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { asRankdError, codeOf, type ErrorCode, RankdError } from '../../base/errors.ts';
import { escapeControls } from '../../base/text.ts';
import { maxReasonLength } from '../../core/model.ts';
import { fromFramework, type sendError, statuses } from '../../http/errors.ts';
import { errorDocument, pageHintOf } from '../../usecases/error-document.ts';
import { gzip, type PageFile, packingFor } from './page-files.ts';

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

/** The page may show more than a game: it is for the operator. */
const pageStatuses: Record<ErrorCode, number> = {
  ...statuses,
  no_session: 401,
  link_refused: 403,
  session_idle: 403,
  not_from_page: 403,
  wrong_host: 421,
  usage: 400,
  already_exists: 409,
  conflict: 409,
  config_invalid: 409,
  too_many_streams: 503,
};

/** A mistake in one field of a query or a body; the page shows it next to the field. */
export class FieldError extends RankdError {
  readonly field: string;

  constructor(field: string, what: string) {
    super('invalid_request', `\`${field}\` ${what}.`);
    this.field = field;
  }
}

/** A document, as `--json` prints it. */
export type Document = Record<string, unknown>;

/** Shorter documents are not worth compressing. */
const minPackedBytes = 1_024;

export async function sendDocument(reply: FastifyReply, document: Document): Promise<FastifyReply> {
  const bytes = Buffer.from(escapeControls(JSON.stringify({ v: 1, ...document })));
  const isPacked = bytes.length >= minPackedBytes && packingFor(reply.request.headers['accept-encoding']) !== undefined;
  const body = isPacked ? await gzip(bytes) : bytes;
  if (isPacked) reply.header('content-encoding', 'gzip');
  return reply.type('application/json; charset=utf-8').header('vary', 'accept-encoding').send(body);
}

/**
 * Answers with the error in the words of the command line. It is logged at `debug`, because callers can request
 * anything.
 */
export function sendPageError({ error: cause, request, reply }: Parameters<typeof sendError>[0]): FastifyReply {
  const error = codeOf(cause) === 'FST_ERR_BAD_URL' ? nothingAt() : asRankdError(fromFramework(cause));
  const document = errorDocument(error);
  const isOurs = error.code === 'internal';
  const message = `Something went wrong inside rankd; its log says what: ${request.id}.`;
  const field = error instanceof FieldError ? { field: error.field } : {};
  if (document.retryAfter !== undefined) reply.header('retry-after', document.retryAfter);
  request.notes.error = error;
  if (isOurs) request.notes.failure = cause;
  const told = { ...document, try: pageHintOf(error), ...(isOurs && { message }), ...field, requestId: request.id };
  void sendDocument(reply.code(pageStatuses[error.code]), told);
  return reply;
}

export function nothingAt(): RankdError {
  return RankdError.withoutStack('not_found', 'There is nothing at this address.', { hint: 'the page is at /' });
}

export function sendFile(reply: FastifyReply, { type, isForEver, bytes, packed }: PageFile): FastifyReply {
  const packing = packingFor(reply.request.headers['accept-encoding']);
  const packedBytes = packing && packed[packing];
  if (packedBytes !== undefined && packing !== undefined) reply.header('content-encoding', packing);
  if (isForEver) reply.header('cache-control', 'public, max-age=31536000, immutable');
  return reply
    .type(type)
    .header('vary', 'accept-encoding')
    .send(packedBytes ?? bytes);
}
