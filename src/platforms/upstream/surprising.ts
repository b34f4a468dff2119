import type { Answer } from './fetch-answer.ts';
import { problemOf } from './problem.ts';

/** The statuses and codes of Open Cloud's page on errors; 502 and 504 come from the gateways before it. */
const statuses = new Set([200, 400, 401, 403, 404, 409, 429, 499, 500, 501, 502, 503, 504]);
const codes = new Set([
  ...['INVALID_ARGUMENT', 'PERMISSION_DENIED', 'NOT_FOUND', 'ABORTED', 'RESOURCE_EXHAUSTED'],
  ...['CANCELLED', 'INTERNAL', 'NOT_IMPLEMENTED', 'UNAVAILABLE'],
  ...['0', '1'], // of the gateway, and of the public host for a group that does not exist
]);

/** What nobody has told rankd of in the status and in the error code of an answer. `body` must have no key in it. */
export function surprisesIn({ status, body = '' }: Pick<Answer, 'status' | 'body'>): string[] {
  const isSuccess = status >= 200 && status < 300;
  const code = isSuccess ? undefined : problemOf(body).code;
  return [
    ...(statuses.has(status) ? [] : [`status ${status}`]),
    ...(code === undefined || codes.has(code) ? [] : [`code ${/^\w{1,40}$/.test(code) ? code : '?'}`]),
  ];
}
