import { expect, test } from 'vitest';
import { expectError, messageOf } from '../support/answers.ts';
import { onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';
import { send } from '../support/open-test-app.ts';

const { trainee: bob } = sampleUsers;

test(
  'a role of the ladder that is deleted on Roblox is told as that, until it is there again',
  onOpenCloud(
    async ({ fake, clock, rank, url }) => {
      const { roles } = fake.group;
      fake.group.roles = roles.filter(({ id }) => id !== sampleRoles.captain);
      clock.skip(31_000); // longer than the roles are remembered
      const unavailable = { status: 503, code: 'platform_unavailable', error: 'Roblox unavailable' };
      for (const answer of [await rank(bob, { idempotencyKey: 'one' }), await send(`${url}/readyz`, {})]) {
        expectError(answer, unavailable);
        expect(messageOf(answer)).toMatch(/group\.ladder does not fit the group: 50 is not a rank.* rankd reload/);
      }
      fake.group.roles = roles;
      expect((await rank(bob, { idempotencyKey: 'one' })).status).toBe(200);
      expect((await send(`${url}/readyz`, {})).status).toBe(200);
    },
    { ladder: [10, 20, 50] },
  ),
);
