import { expect, test } from 'vitest';
import { onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';

const { trainee: bob } = sampleUsers;

test(
  'a change is made within a short deadline also where the public role list never answers',
  onOpenCloud(
    async ({ fake, clock, rank }) => {
      clock.skip(600_000); // what was read of the group at the start is read anew, and the list is asked again
      const before = fake.journal.requests('publicRoles').length;
      expect((await rank(bob)).status).toBe(200);
      expect(fake.journal.requests('publicRoles').length).toBeGreaterThan(before);
      expect(fake.group.held(bob)).toEqual([sampleRoles.officer]);
    },
    {
      deadlineMs: 1_500,
      tuning: { publicRolesTimeoutMs: 4_000 },
      prepare: ({ faults }) => faults.add({ operation: 'publicRoles', kind: 'hang', times: 999 }),
    },
  ),
);
