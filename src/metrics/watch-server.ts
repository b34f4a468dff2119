import type { FastifyInstance } from 'fastify';
import type { ErrorCode } from '../base/errors.ts';
import type { Meters } from './meters.ts';

/** Refusals because of the caller, rather than because of the request. */
const ofCallers = new Set<ErrorCode>([
  'missing_authorization',
  'invalid_key',
  'key_not_allowed',
  'place_not_whitelisted',
  'key_paused',
]);

/** Counts and times the requests to the API. All addresses without a route share one label, so that no caller can make labels. */
export function watchServer(server: FastifyInstance, meters: Meters): void {
  server.addHook('onResponse', async ({ routeOptions, notes: { error } }, { statusCode, elapsedTime }) => {
    const route = routeOptions.url ?? 'none';
    meters.requests.inc({ route, status: statusCode, code: error?.code ?? '' });
    meters.requestSeconds.observe({ route }, elapsedTime / 1000);
    if (error !== undefined && ofCallers.has(error.code)) {
      meters.keyFailures.inc({ code: error.code, reason: error.details?.reason ?? '' });
    }
  });
}
