import { crypto } from '../base/node-modules.ts';

/** The header with a challenge to a daemon that is reached over the internet. */
export const questionHeader = 'x-rankd-question';
/** The header with the daemon's response to the challenge. */
export const proofHeader = 'x-rankd-proof';

const question = /^[\w-]{1,64}$/;

/** The headers of a challenge, as the daemon received them. */
export interface Asked {
  question: unknown;
  authorization: string | undefined;
}

/**
 * Returns a daemon's response to a challenge, or `undefined` if the challenge is malformed. A client that knows the
 * daemon's identity can verify that this daemon responded and received the Authorization header.
 */
export function proofOf(identity: string, { question: asked, authorization = '' }: Asked): string | undefined {
  if (typeof asked !== 'string' || !question.test(asked)) return undefined;
  return crypto().createHmac('sha256', identity).update(`${asked} ${authorization}`).digest('base64url');
}
