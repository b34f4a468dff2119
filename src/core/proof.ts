import { crypto } from '../base/node-modules.ts';

/** With this header, whoever asks a daemon over the internet gives it a question. */
export const questionHeader = 'x-rankd-question';
/** The daemon's answer to it. */
export const proofHeader = 'x-rankd-proof';

const question = /^[\w-]{1,64}$/;

/** What reached a daemon of the headers that it is asked with. */
export interface Asked {
  question: unknown;
  authorization: string | undefined;
}

/**
 * What a daemon answers to a question. Only who knows its identity can tell that it was this one, and whether the header Authorization
 * came through; the answer says nothing else.
 */
export function proofOf(identity: string, { question: asked, authorization = '' }: Asked): string | undefined {
  if (typeof asked !== 'string' || !question.test(asked)) return undefined;
  return crypto().createHmac('sha256', identity).update(`${asked} ${authorization}`).digest('base64url');
}
