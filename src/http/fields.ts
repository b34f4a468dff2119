import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import { RankdError } from '../base/errors.ts';
import { withoutKeys } from '../core/api-key.ts';
import { isUserName } from '../core/user-ref.ts';

// Schemas for the fields shared by several requests.

const wholeNumber = `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`;
const idError = ({ input }: { input?: unknown }) => (input === undefined ? 'is missing' : wholeNumber);

/** Adds a hint for Studio's test players, which have negative ids. */
const userIdError = ({ input }: { input?: unknown }) =>
  /^-\d{1,3}$/.test(String(input)) ? `${wholeNumber}; ${input} is a Studio test player` : idError({ input });

/** A whole number up to 2^53-1, as a JSON number or a string of digits. */
export const id = idWith(idError);
export const rankOrRoleId = idWith(({ input }) =>
  input === undefined ? 'is missing' : 'must be a rank number or a role id',
);
export const userId = idWith(userIdError);
export const memberId = userId.refine((value) => value > 0, { error: 'must be above 0' });

function idWith(error: ({ input }: { input?: unknown }) => string) {
  return z
    .union([z.int({ error }).min(0, { error }), z.string({ error }).regex(/^\d{1,16}$/, { error })], { error })
    .transform(Number)
    .refine(Number.isSafeInteger, { error });
}

export const text = z
  .string({ error: ({ input }) => (input === undefined ? 'is missing' : 'must be a string') })
  .max(1_000, { error: 'must be at most 1000 characters' })
  .overwrite((value) => withoutKeys(value.toWellFormed())); // masks a game key that was sent in the wrong field

export const optionalText = text.nullish().transform((value) => value ?? undefined);

const userName = text.refine(isUserName, {
  error: 'must be 3 to 20 letters, digits and underscores: the user name, not the display name',
});

export const memberFields = {
  robloxUserId: memberId.nullish().describe('User id of the member, above 0; or send `username`.'),
  username: userName.nullish().describe("The member's current user name, instead of `robloxUserId`."),
};

export function namesOneMember(
  { robloxUserId, username }: z.output<z.ZodObject<typeof memberFields>>,
  context: z.RefinementCtx,
): void {
  if ((robloxUserId == null) !== (username == null)) return;
  const message =
    robloxUserId == null
      ? 'robloxUserId or username is missing'
      : 'robloxUserId and username are both set; send only one';
  context.addIssue({ code: 'custom', message });
}

export const notAnObject = { error: 'The body must be a JSON object' };

export const idempotencyKey = z.string().max(128);

/** Throws an `invalid_request` that names every invalid field. */
export function parseFields<Schema extends z.ZodType>(schema: Schema, given: unknown): z.output<Schema> {
  const { success, data, error } = schema.safeParse(given);
  if (success) return data;
  const problems = error.issues.map(({ path, message }) => [...path.map(String), message].join(' '));
  throw new RankdError('invalid_request', `${problems.join('; ')}.`);
}

/** Returns the place id from a query or body, in either spelling. Throws `missing_placeid` or `invalid_request`. */
export function parsePlaceId(fields: unknown, where: 'query' | 'body'): number {
  const placeId = givenPlaceId(fields, where);
  if (placeId !== undefined) return placeId;
  throw new RankdError('missing_placeid', `Send the place id (game.PlaceId) as placeid in the ${where}.`);
}

/**
 * Returns a request's place id, from the query or else from the Roblox-Id header, or `undefined` if it has none. Throws
 * `invalid_request`.
 */
export function placeOf({ query, headers }: Pick<FastifyRequest, 'query' | 'headers'>): number | undefined {
  return givenPlaceId(query, 'query') ?? givenPlaceId({ placeid: headers['roblox-id'] }, 'Roblox-Id header');
}

function givenPlaceId(fields: unknown, where: string): number | undefined {
  const { placeid, placeId } = Object(fields) as { placeid?: unknown; placeId?: unknown };
  const given = isMissing(placeid, where) ? placeId : placeid;
  if (isMissing(given, where)) return undefined;
  if (!isMissing(placeId, where) && String(placeId) !== String(given)) {
    throw new RankdError('invalid_request', `placeid and placeId in the ${where} differ; send one of them.`);
  }
  if (Number.isSafeInteger(given) && (given as number) >= 0) return given as number; // faster than the schema
  const { success, data } = id.safeParse(given);
  if (!success) throw new RankdError('invalid_request', `placeid in the ${where} ${wholeNumber}.`);
  return data;
}

function isMissing(given: unknown, where: string): boolean {
  return given === undefined || given === null || (given === '' && where !== 'body');
}
