import { crypto } from '../base/node-modules.ts';

/** The request header with a challenge. The response proves whether an address leads to a specific daemon. */
export const questionHeader = 'x-rankd-question';
/** The response header with the daemon's answer to the challenge. */
export const proofHeader = 'x-rankd-proof';

const questionPattern = /^[\w-]{1,64}$/;

export interface Challenge {
  question: unknown;
  authorization: string | undefined;
}

/**
 * Returns a daemon's response to a challenge, or `undefined` if the challenge is malformed. A client that knows the
 * daemon's identity can verify that this daemon responded, and that it received the client's Authorization header
 * unchanged.
 */
export function proofOf(identity: string, { question, authorization = '' }: Challenge): string | undefined {
  if (typeof question !== 'string' || !questionPattern.test(question)) return undefined;
  return crypto().createHmac('sha256', identity).update(`${question} ${authorization}`).digest('base64url');
}
