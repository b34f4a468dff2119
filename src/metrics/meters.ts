import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { version } from '../base/version.ts';

/** In seconds, from an answer out of memory to the longest usual deadline. */
const buckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

export type Meters = ReturnType<typeof createMeters>;

/** Everything that is counted and timed while rankd works. No label has a value that a caller can choose. */
export function createMeters() {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const build = new Gauge({
    name: 'rankd_build_info',
    help: 'Always 1; the labels say what runs.',
    labelNames: ['version'],
    registers,
  });
  build.set({ version }, 1);
  return {
    registry,
    requests: new Counter({
      name: 'rankd_http_requests_total',
      help: 'Requests that were answered, by route, status and error code (empty for success).',
      labelNames: ['route', 'status', 'code'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'rankd_http_request_duration_seconds',
      help: 'From the arrival of a request to the end of its answer.',
      labelNames: ['route'],
      buckets,
      registers,
    }),
    keyFailures: new Counter({
      name: 'rankd_key_failures_total',
      help: 'Requests refused because of their key or place, by code and reason.',
      labelNames: ['code', 'reason'],
      registers,
    }),
    changes: new Counter({
      name: 'rankd_changes_total',
      help: 'Rank changes that came to an outcome; one that was unknown counts again when it is reconciled.',
      labelNames: ['outcome', 'code', 'dry_run'],
      registers,
    }),
    platformCalls: new Counter({
      name: 'rankd_platform_calls_total',
      help: 'Calls of Roblox by operation and outcome (ok or an error code).',
      labelNames: ['operation', 'outcome'],
      registers,
    }),
    platformSeconds: new Histogram({
      name: 'rankd_platform_call_duration_seconds',
      help: 'How long calls of Roblox took, the wait for their turn and repeated tries included.',
      labelNames: ['operation'],
      buckets,
      registers,
    }),
    credentialState: new Gauge({
      name: 'rankd_credential_state',
      help: '1 for the state that Roblox told last of the Roblox key: valid, disabled, expired or invalid.',
      labelNames: ['state'],
      registers,
    }),
    credentialExpiry: new Gauge({
      name: 'rankd_credential_expiry_timestamp_seconds',
      help: 'When the Roblox key expires, by its acting account; absent where Roblox does not say.',
      labelNames: ['acting_account'],
      registers,
    }),
  };
}
