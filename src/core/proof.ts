import { crypto } from '../base/node-modules.ts';

/** With this header, whoever asks a daemon over the internet gives it a question. */
export const questionHeader = 'x-rankd-question';
/** The daemon's answer to it. */
export const proofHeader = 'x-rankd-proof';

const question = /^[\w-]{1,64}$/;

/** What a daemon answers to a question. Only who knows its identity can tell that it was this one; the answer says nothing else. */
export function proofOf(identity: string, asked: unknown): string | undefined {
  if (typeof asked !== 'string' || !question.test(asked)) return undefined;
  return crypto().createHmac('sha256', identity).update(asked).digest('base64url');
}
