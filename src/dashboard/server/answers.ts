import type { FastifyReply } from 'fastify';
import { asRankdError, codeOf, type ErrorCode, RankdError } from '../../base/errors.ts';
import { escapeControls } from '../../base/text.ts';
import { fromFramework, type sendError, statuses } from '../../http/errors.ts';
import { errorDocument, pageHintOf } from '../../usecases/error-document.ts';
import { gzip, type PageFile, packingFor } from './page-files.ts';
import { FieldError } from './requests.ts';

/** A JSON document, in most cases identical to one that `--json` prints. */
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

/** Overrides the status of the codes that the page returns but the API does not. */
const pageStatuses: Record<ErrorCode, number> = {
  ...statuses,
  no_session: 401,
  link_refused: 403,
  session_idle: 403,
  view_only: 403,
  not_from_page: 403,
  wrong_host: 421,
  usage: 400,
  already_exists: 409,
  conflict: 409,
  config_invalid: 409,
  too_many_streams: 503,
};

/** Sends an error in the format of the command line's `--json`, with the field that the error is about, if any. */
export function sendPageError({ error: cause, request, reply }: Parameters<typeof sendError>[0]): FastifyReply {
  const error = codeOf(cause) === 'FST_ERR_BAD_URL' ? nothingHere() : asRankdError(fromFramework(cause));
  const document = errorDocument(error);
  const isOurs = error.code === 'internal';
  const message = `Something went wrong inside rankd; its log has the details under ${request.id}.`;
  const field = error instanceof FieldError ? { field: error.field } : {};
  if (document.retryAfter !== undefined) reply.header('retry-after', document.retryAfter);
  request.notes.error = error;
  if (isOurs) request.notes.failure = cause;
  const shown = { ...document, try: pageHintOf(error), ...(isOurs && { message }), ...field, requestId: request.id };
  void sendDocument(reply.code(pageStatuses[error.code]), shown);
  return reply;
}

export function nothingHere(): RankdError {
  return RankdError.withoutStack('not_found', 'There is nothing at this address.', {
    hint: 'run `rankd dashboard`, which prints the address of the page',
  });
}

export function sendFile(reply: FastifyReply, { type, isImmutable, bytes, packed }: PageFile): FastifyReply {
  const packing = packingFor(reply.request.headers['accept-encoding']);
  const packedBytes = packing && packed[packing];
  if (packedBytes !== undefined && packing !== undefined) reply.header('content-encoding', packing);
  if (isImmutable) reply.header('cache-control', 'public, max-age=31536000, immutable');
  return reply
    .type(type)
    .header('vary', 'accept-encoding')
    .send(packedBytes ?? bytes);
}
