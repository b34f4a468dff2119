import { RankdError } from '../errors.ts';

/** An id as games send it: a whole JSON number up to 2^53-1, or the same as a decimal string. `undefined` for anything else. */
export function parseId(value: unknown): number | undefined {
  const id = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value;
  return typeof id === 'number' && Number.isSafeInteger(id) && id >= 0 ? id : undefined;
}

/** The place id among the fields of a query or body, under either spelling. Throws where it is missing or no id. */
export function parsePlaceId(fields: unknown, where: string): number {
  const { placeid, placeId } = Object(fields) as { placeid?: unknown; placeId?: unknown };
  const given = placeid ?? placeId;
  if (given === undefined || given === null || (given === '' && where === 'query')) {
    throw new RankdError('missing_placeid', `Send the place id (game.PlaceId) as placeid in the ${where}.`);
  }
  const id = parseId(given);
  if (id === undefined) {
    throw new RankdError(
      'invalid_request',
      `placeid in the ${where} must be a whole number from 0 to 9007199254740991.`,
    );
  }
  return id;
}
