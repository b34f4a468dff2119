import { z } from 'zod';
import type { RankRequest } from '../core/model.ts';
import { RankdError } from '../errors.ts';
import { parseId } from './ids.ts';

const wholeNumber = 'must be a whole number from 0 to 9007199254740991';

const id = z.unknown().transform((value, context) => {
  const parsed = parseId(value);
  if (parsed !== undefined) return parsed;
  context.issues.push({ code: 'custom', message: value === undefined ? 'is missing' : wholeNumber, input: value });
  return z.NEVER;
});

const text = z
  .string({ error: ({ input }) => (input === undefined ? 'is missing' : 'must be a string') })
  .max(1_000, { error: 'must be at most 1000 characters' });

/** A field that a client may leave out or set to null. */
const optionalText = text.nullish().transform((value) => value ?? undefined);

/** The body of a rank request: five required fields, and what the reference client sends besides. Unknown fields are ignored. */
export const rankBody = z.object(
  {
    rankerName: text,
    rankerId: id,
    rankeeName: text,
    rankeeId: id.refine((rankeeId) => rankeeId > 0, { error: 'must be above 0' }),
    newRankId: id,
    command: optionalText,
    oldRankName: optionalText,
    prefix: optionalText,
    webhookUrl: optionalText,
  },
  { error: 'The body must be a JSON object' },
);

/** The request in a parsed body. Throws `invalid_request` that names every field that is missing or of the wrong type. */
export function parseRankRequest(json: unknown): RankRequest {
  const { success, data, error } = rankBody.safeParse(json);
  if (!success) {
    const problems = error.issues.map(({ path, message }) => [...path.map(String), message].join(' '));
    throw new RankdError('invalid_request', `${problems.join('; ')}.`);
  }
  const { webhookUrl, ...fields } = data;
  const present = Object.entries({ ...fields, webhookHost: hostOf(webhookUrl) }).filter(
    ([, value]) => value !== undefined,
  );
  return Object.fromEntries(present) as unknown as RankRequest;
}

/** Only the host: the rest of a webhook address is as good as a password. */
function hostOf(url: string | undefined): string | undefined {
  return url === undefined || !URL.canParse(url) ? undefined : new URL(url).host || undefined;
}
