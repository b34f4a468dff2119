import { RankdError } from '../base/errors.ts';

/**
 * The refusal of a request whose header Roblox-Id is not the place that the request names, or `undefined` if it is.
 *
 * Roblox puts the place id into this header of every request from a game server, and no script can set it. Other
 * clients can, so the header tells games apart but proves nothing. Source: the documentation of HttpService.
 */
export function refusalOfRobloxId({ header, placeId }: RobloxIdClaim): RankdError | undefined {
  if (header === String(placeId)) return undefined;
  const found =
    header === ''
      ? 'it has no header Roblox-Id, which every game server sends'
      : `its header Roblox-Id is ${/^\d{1,16}$/.test(header) ? `that of place ${header}` : 'no place id'}`;
  return RankdError.withoutStack(
    'place_not_whitelisted',
    `The request names place ${placeId}, but ${found}: security.roblox_id is enforce. Send game.PlaceId, no universe id.`,
    {
      hint: 'whitelist the id of each place, or set security.roblox_id to warn in rankd.yaml',
      details: { reason: 'roblox_id_mismatch', placeId },
    },
  );
}

export interface RobloxIdClaim {
  /** Empty if the request has no such header. */
  header: string;
  placeId: number;
}
