import * as z from 'zod';
import { RankdError } from '../base/errors.ts';
import { withoutKeys } from '../core/api-key.ts';
import type { RankRequest } from '../core/model.ts';
import { callerHash } from '../usecases/webhooks/target.ts';
import { id, userId } from './ids.ts';

export const text = z
  .string({ error: ({ input }) => (input === undefined ? 'is missing' : 'must be a string') })
  .max(1_000, { error: 'must be at most 1000 characters' })
  .overwrite((value) => withoutKeys(value.toWellFormed())); // a game may send its key in a wrong field

/** A field that a client may leave out or set to null. */
export const optionalText = text.nullish().transform((value) => value ?? undefined);

export const memberId = userId.refine((userId) => userId > 0, { error: 'must be above 0' });

/** The body of a rank request: five required fields and the others of the reference client. Unknown fields are ignored. */
export const rankBody = z.object(
  {
    rankerName: text.describe('Name of the player who asks for the change.'),
    rankerId: userId.describe('User id of the player who asks; 0: not a player.'),
    rankeeName: text.describe('Name of the member whose rank is to change.'),
    rankeeId: memberId.describe('User id of the member whose rank is to change, above 0.'),
    newRankId: id.describe('The rank number in the group (1 to 255), or a role id (above 255).'),
    command: optionalText.describe('The command that led to the change; kept with it.'),
    oldRankName: optionalText.describe('The rank as the game knew it; kept with the change.'),
    prefix: optionalText.describe('The prefix of the command; kept with the change.'),
    webhookUrl: optionalText.describe('Of this address only the host is kept with the change; it is never called.'),
  },
  { error: 'The body must be a JSON object' },
);

/** The header `Idempotency-Key`. */
export const idempotencyKey = z.string().max(128);

/** The request in a parsed body. Throws an `invalid_request` that names every field that is missing or has the wrong type. */
export function parseRankRequest(json: unknown, callerUrl: 'ignore' | 'match'): RankRequest {
  const { webhookUrl, ...fields } = parseBody(rankBody, json);
  const webhookHash = callerUrl === 'match' ? callerHash(webhookUrl) : undefined;
  return present({ ...fields, webhookHost: hostOf(webhookUrl), webhookHash });
}

/** A parsed body that fits the schema. Throws an `invalid_request` that names every field that does not. */
export function parseBody<Body extends z.ZodType>(schema: Body, json: unknown): z.output<Body> {
  const { success, data, error } = schema.safeParse(json);
  if (success) return data;
  const problems = error.issues.map(({ path, message }) => [...path.map(String), message].join(' '));
  throw new RankdError('invalid_request', `${problems.join('; ')}.`);
}

/** The request without the fields that were left out. */
export function present(request: { [Field in keyof RankRequest]: RankRequest[Field] | undefined }): RankRequest {
  return Object.fromEntries(
    Object.entries(request).filter(([, value]) => value !== undefined),
  ) as unknown as RankRequest;
}

/** Only the host is kept, because whoever has the rest of a webhook address can post to it. */
function hostOf(url: string | undefined): string | undefined {
  return url === undefined || !URL.canParse(url) ? undefined : new URL(url).host || undefined;
}
