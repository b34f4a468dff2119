import type { LimitsConfig } from '../config/config.ts';
import type { Key } from '../core/model.ts';
import type { Limit } from './inbound-limits.ts';

/** The limits of rank requests. The place's comes first: where it refuses, the key's other places lose nothing by it. */
export function rankLimits(
  { rankPerMinute, rankBurst, placePerMinute }: LimitsConfig,
  { key, placeId }: { key: Key; placeId: number },
): Limit[] {
  const { id, ratePerMinute = rankPerMinute } = key;
  const burstOf = (perMinute: number) => rankBurst || perMinute;
  return [
    {
      name: 'place',
      of: `${id} ${placeId}`,
      perMinute: placePerMinute,
      burst: Math.min(burstOf(placePerMinute), placePerMinute),
    },
    {
      name: 'rank',
      of: id,
      perMinute: ratePerMinute,
      burst: key.ratePerMinute === undefined ? burstOf(ratePerMinute) : Math.min(burstOf(ratePerMinute), ratePerMinute),
    },
  ];
}
