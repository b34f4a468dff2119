import { place } from './daemon.ts';
import type { LoadRequest } from './load.ts';

export function verification(secret: string, placeId = place): LoadRequest {
  return {
    path: '/v1/apikey',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ placeid: placeId }),
  };
}
