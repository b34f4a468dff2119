import { describe, expect, test } from 'vitest';
import { codeOf } from '../support/answers.ts';
import { onOpenCloud, sampleUsers } from '../support/open-cloud-app.ts';

const { trainee: bob } = sampleUsers;
/** Longer than the group's data is cached. */
const longMs = 61_000;

describe.each([
  ['roles', '{}'],
  ['roles', '{"groupRoles":[]}'],
  ['memberships', '{}'],
] as const)('%s without entries (%s)', (operation, body) => {
  test(
    'prove nothing and are not cached',
    onOpenCloud(
      async ({ fake, clock, rank }) => {
        clock.skip(longMs);
        fake.faults.add({ operation, kind: 'body', body, times: 999 });
        expect(codeOf(await rank(bob))).toMatch(/^platform_(unavailable|busy)$/);
        expect(fake.journal.writes()).toEqual([]);
        fake.faults.clear();
        expect((await rank(bob)).status).toBe(200);
      },
      { deadlineMs: 1_500 },
    ),
  );
});

test.each(['roles', 'memberships'] as const)('%s are read again if their list is missing once', (operation) =>
  onOpenCloud(async ({ fake, clock, rank }) => {
    clock.skip(longMs);
    fake.faults.add({ operation, kind: 'body', body: '{}' });
    expect((await rank(bob)).status).toBe(200);
  })(),
);
