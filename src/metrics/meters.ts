import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { ErrorCode, RefusalReason } from '../base/errors.ts';
import { version } from '../base/version.ts';
import { changeCodes, endState } from '../core/change-codes.ts';

/** In seconds, from an in-memory response to the longest usual deadline. */
const buckets = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

export type Meters = ReturnType<typeof createMeters>;

/** Refusals that the caller, rather than the request, caused, with their reasons. */
export const callerRefusals: Partial<Record<ErrorCode, readonly RefusalReason[]>> = {
  missing_authorization: ['no_key'],
  invalid_key: [
    ...(['malformed', 'unknown', 'wrong_mode', 'revoked', 'expired', 'rotated_out', 'simulated'] as const),
    ...(['workspace_suspended', 'not_top_plan'] as const),
  ],
  key_not_allowed: ['missing_scope'],
  place_not_whitelisted: ['not_listed', 'disabled', 'no_place', 'unpublished', 'roblox_id_mismatch'],
  key_paused: ['paused'],
};

export const platformOperations = [
  ...(['group', 'roles', 'role', 'member', 'members', 'user', 'userName', 'places'] as const),
  ...(['assign', 'unassign', 'credential'] as const),
];
const platformOutcomes = [
  ...(['ok', 'platform_busy', 'platform_unavailable', 'platform_credential', 'platform_rejected'] as const),
  'outcome_unknown',
];

/**
 * Creates the metrics that requests, platform calls and rank changes update. Callers can't choose the value of any
 * label. Series whose labels are known in advance start at 0, because `increase()` misses the event that creates a
 * series.
 */
export function createMeters() {
  const meters = newMeters();
  for (const [code, reasons] of Object.entries(callerRefusals))
    for (const reason of reasons) meters.keyFailures.inc({ code, reason }, 0);
  for (const dry_run of ['false', 'true']) {
    meters.changes.inc({ outcome: 'applied', code: '', dry_run }, 0);
    for (const code of changeCodes) meters.changes.inc({ outcome: endState(code), code, dry_run }, 0);
  }
  for (const operation of platformOperations) {
    meters.platformSeconds.zero({ operation });
    for (const outcome of platformOutcomes) meters.platformCalls.inc({ operation, outcome }, 0);
  }
  return meters;
}

function newMeters() {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const build = new Gauge({
    name: 'rankd_build_info',
    help: 'Always 1; the label has the version.',
    labelNames: ['version'],
    registers,
  });
  build.set({ version }, 1);
  return {
    registry,
    requests: new Counter({
      name: 'rankd_http_requests_total',
      help: 'Requests with a response, by route, status and error code (empty for success).',
      labelNames: ['route', 'status', 'code'],
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'rankd_http_request_duration_seconds',
      help: 'Time from the start of a request to the end of its response.',
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
      help: 'Rank changes by outcome. A change of unknown outcome counts again when it is reconciled.',
      labelNames: ['outcome', 'code', 'dry_run'],
      registers,
    }),
    platformCalls: new Counter({
      name: 'rankd_platform_calls_total',
      help: 'Calls to Roblox, by operation and outcome (ok or an error code).',
      labelNames: ['operation', 'outcome'],
      registers,
    }),
    platformSeconds: new Histogram({
      name: 'rankd_platform_call_duration_seconds',
      help: 'Duration of calls to Roblox, including the wait in the queue and retries.',
      labelNames: ['operation'],
      buckets,
      registers,
    }),
    credentialState: new Gauge({
      name: 'rankd_credential_state',
      help: '1 for the last state of the Roblox key that Roblox reported: valid, disabled, expired or invalid.',
      labelNames: ['state'],
      registers,
    }),
    credentialExpiry: new Gauge({
      name: 'rankd_credential_expiry_timestamp_seconds',
      help: 'When the Roblox key expires (Unix time), by acting account; absent if Roblox does not report it.',
      labelNames: ['acting_account'],
      registers,
    }),
  };
}
