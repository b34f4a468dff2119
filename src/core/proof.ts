import { crypto } from '../base/node-modules.ts';

/** The header with a challenge to a daemon that is reached over the internet. */
export const questionHeader = 'x-rankd-question';
/** The header with the daemon's response to the challenge. */
export const proofHeader = 'x-rankd-proof';

const question = /^[\w-]{1,64}$/;

/** A challenge's headers, as the daemon received them. */
export interface Challenge {
  question: unknown;
  authorization: string | undefined;
}

/**
 * Returns a daemon's response to a challenge, or `undefined` if the challenge is malformed. A client that knows the
 * daemon's identity can verify that this daemon responded and received the Authorization header.
 */
export function proofOf(identity: string, { question: text, authorization = '' }: Challenge): string | undefined {
  if (typeof text !== 'string' || !question.test(text)) return undefined;
  return crypto().createHmac('sha256', identity).update(`${text} ${authorization}`).digest('base64url');
}
