import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import { RankdError } from '../base/errors.ts';

const wholeNumber = `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`;
const error = ({ input }: { input?: unknown }) => (input === undefined ? 'is missing' : wholeNumber);

/** Studio gives its test players negative ids. */
const userError = ({ input }: { input?: unknown }) =>
  /^-\d{1,3}$/.test(String(input)) ? `${wholeNumber}; ${input} is a test player of Studio` : error({ input });

/** An id as games send it: a whole JSON number up to 2^53-1, or the same as a decimal string. */
export const id = idWith(error);
/** The id of a player. */
export const userId = idWith(userError);

function idWith(error: ({ input }: { input?: unknown }) => string) {
  return z
    .union([z.int({ error }).min(0, { error }), z.string({ error }).regex(/^\d{1,16}$/, { error })], { error })
    .transform(Number)
    .refine(Number.isSafeInteger, { error });
}

/** The place id among the fields of a query or body, under either spelling. Throws `missing_placeid` or `invalid_request`. */
export function parsePlaceId(fields: unknown, where: string): number {
  const placeId = givenPlaceId(fields, where);
  if (placeId !== undefined) return placeId;
  throw new RankdError('missing_placeid', `Send the place id (game.PlaceId) as placeid in the ${where}.`);
}

/** The place that a request without a place in its body comes from: as its query says, or else as Roblox says in `Roblox-Id`. */
export function placeOf({ query, headers }: Pick<FastifyRequest, 'query' | 'headers'>): number | undefined {
  return givenPlaceId(query, 'query') ?? givenPlaceId({ placeid: headers['roblox-id'] }, 'header Roblox-Id');
}

function givenPlaceId(fields: unknown, where: string): number | undefined {
  const { placeid, placeId } = Object(fields) as { placeid?: unknown; placeId?: unknown };
  const given = isMissing(placeid, where) ? placeId : placeid;
  if (isMissing(given, where)) return undefined;
  if (Number.isSafeInteger(given) && (given as number) >= 0) return given as number; // what games send, without the slower schema
  const { success, data } = id.safeParse(given);
  if (!success) throw new RankdError('invalid_request', `placeid in the ${where} ${wholeNumber}.`);
  return data;
}

function isMissing(given: unknown, where: string): boolean {
  return given === undefined || given === null || (given === '' && where !== 'body');
}
