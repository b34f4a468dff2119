import { RankdError } from '../base/errors.ts';

/**
 * Roblox puts the id of the place into the header Roblox-Id of everything a game server sends, and lets no script set it.
 * Anyone outside of Roblox can send it, so it tells games apart but proves nothing. Source: HttpService's documentation.
 *
 * The refusal of a request whose header does not fit the place it names.
 */
export function refusalOfRobloxId({ header, placeId }: RobloxIdClaim): RankdError | undefined {
  if (header === String(placeId)) return undefined;
  const found =
    header === ''
      ? 'it has no header Roblox-Id, which every game server sends'
      : `its header Roblox-Id is ${/^\d{1,16}$/.test(header) ? `that of place ${header}` : 'no place id'}`;
  return new RankdError(
    'place_not_whitelisted',
    `The request names place ${placeId}, but ${found}: security.roblox_id is enforce. Send game.PlaceId, no universe id.`,
    {
      hint: 'whitelist the id of each place, or set security.roblox_id to warn in rankd.yaml',
      details: { reason: 'roblox_id_mismatch', placeId },
    },
  );
}

export interface RobloxIdClaim {
  /** Empty where there is none. */
  header: string;
  placeId: number;
}
