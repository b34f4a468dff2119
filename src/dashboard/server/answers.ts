import type { IncomingMessage, ServerResponse } from 'node:http';
import { asRankdError, type ErrorCode, RankdError } from '../../base/errors.ts';
import { escapeControls } from '../../base/text.ts';
import { statuses } from '../../http/errors.ts';
import { errorDocument } from '../../usecases/documents/error.ts';
import { gzip, type PageFile, packingFor } from './page-files.ts';

/** What the page may be told is more than what a game may: it is for the operator. */
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

/** A mistake in one field of a query or a body, beside which the page shows it. */
export class FieldError extends RankdError {
  readonly field: string;

  constructor(field: string, what: string) {
    super('invalid_request', `\`${field}\` ${what}.`);
    this.field = field;
  }
}

/** A document, as `--json` prints it. */
export type Document = Record<string, unknown>;

/** Shorter documents are not worth the packing. */
const minPackedBytes = 1_024;

export async function sendDocument(
  { request, response, status = 200 }: { request: IncomingMessage; response: ServerResponse; status?: number },
  document: Document,
): Promise<void> {
  const bytes = Buffer.from(escapeControls(JSON.stringify({ v: 1, ...document })));
  const isPacked = bytes.length >= minPackedBytes && packingFor(request.headers['accept-encoding']) !== undefined;
  const body = isPacked ? await gzip(bytes) : bytes;
  response.setHeader('content-type', 'application/json; charset=utf-8');
  if (isPacked) response.setHeader('content-encoding', 'gzip');
  response.setHeader('vary', 'accept-encoding');
  response.statusCode = status;
  end({ request, response }, body);
}

/** Answers with what is wrong, in the words of the command line. Returns the error as it was told. */
export async function sendError(
  to: { request: IncomingMessage; response: ServerResponse; requestId: string },
  cause: unknown,
): Promise<RankdError> {
  const error = asRankdError(cause);
  const document = errorDocument(error);
  const told =
    error.code === 'internal'
      ? { message: `Something went wrong inside rankd; its log says what: ${to.requestId}.` }
      : {};
  const field = error instanceof FieldError ? { field: error.field } : {};
  if (document.retryAfter !== undefined) to.response.setHeader('retry-after', document.retryAfter);
  const answer = { ...document, ...told, ...field, requestId: to.requestId };
  await sendDocument({ ...to, status: pageStatuses[error.code] }, answer);
  return error;
}

export function sendFile(
  to: { request: IncomingMessage; response: ServerResponse },
  { type, isForEver, bytes, packed }: PageFile,
): void {
  const packing = packingFor(to.request.headers['accept-encoding']);
  const packedBytes = packing && packed[packing];
  if (packedBytes !== undefined && packing !== undefined) to.response.setHeader('content-encoding', packing);
  to.response.setHeader('vary', 'accept-encoding');
  to.response.setHeader('content-type', type);
  if (isForEver) to.response.setHeader('cache-control', 'public, max-age=31536000, immutable');
  end(to, packedBytes ?? bytes);
}

function end({ request, response }: { request: IncomingMessage; response: ServerResponse }, body: Buffer): void {
  response.setHeader('content-length', body.length);
  response.end(request.method === 'HEAD' ? undefined : body);
}
