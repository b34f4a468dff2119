import type { FakeOpenCloud } from '../support/fake-open-cloud/index.ts';

export function configFor({ groupId, baseUrl, legacyBaseUrl, usersBaseUrl, developBaseUrl }: FakeOpenCloud): string {
  return `group:
  id: ${groupId}
platform:
  kind: open-cloud
  base_url: ${baseUrl}
  legacy_base_url: ${legacyBaseUrl}
  users_base_url: ${usersBaseUrl}
  develop_base_url: ${developBaseUrl}
`;
}

/** Returns a `rankd.yaml` without key limits or the circuit breaker, which would refuse a load test's requests. */
export function loadConfigFor(fake: FakeOpenCloud): string {
  return `${configFor(fake)}policy:
  breaker:
    enabled: false
limits:
  rank: 0
  rank_burst: 0
  verify: 0
log:
  level: warn
`;
}
