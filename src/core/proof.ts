import { crypto } from '../base/node-modules.ts';

/** The header with a question to a daemon that is asked over the internet. */
export const questionHeader = 'x-rankd-question';
/** The header with the daemon's answer. */
export const proofHeader = 'x-rankd-proof';

const question = /^[\w-]{1,64}$/;

/** The headers of the question, as the daemon received them. */
export interface Asked {
  question: unknown;
  authorization: string | undefined;
}

/**
 * A daemon's answer to a question. A client that knows the daemon's identity can check that this daemon answered, and
 * that the header Authorization arrived; the answer reveals nothing else.
 */
export function proofOf(identity: string, { question: asked, authorization = '' }: Asked): string | undefined {
  if (typeof asked !== 'string' || !question.test(asked)) return undefined;
  return crypto().createHmac('sha256', identity).update(`${asked} ${authorization}`).digest('base64url');
}
