import type { FakeOpenCloud } from '../support/fake-open-cloud/index.ts';

/** Returns a `rankd.yaml` for the fake. */
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

/** Returns a `rankd.yaml` without limits and the breaker, which would slow down load tests. */
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
