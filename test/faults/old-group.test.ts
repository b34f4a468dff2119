import { describe, expect, test } from 'vitest';
import { codeOf, messageOf } from '../support/answers.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';
import { type Answer, send } from '../support/open-test-app.ts';

/** In the fake's default group, Recruit has rank 1, like the base role. */
const { base, recruit, officer } = sampleRoles;
const { trainee: bob, recruit: rita, memberOnly: max } = sampleUsers;

const held = ({ fake }: OpenCloudApp, userId: number) => fake.group.held(userId);

describe('rank 1', () => {
  test(
    'is the custom role, given and taken like any other; the base role must be named by its id',
    onOpenCloud(async (system) => {
      expect((await system.rank(bob, { newRankId: 1 })).status).toBe(200);
      expect(held(system, bob)).toEqual([recruit]);
      const again = await system.rank(bob, { newRankId: 1 });
      expect(messageOf(again)).toContain('Bob (1001) is already Recruit (rank 1).');
      expect(messageOf(await system.rank(rita))).toContain(
        'Bob (1006) is now Officer (rank 20), was Recruit (rank 1).',
      );
      expect(held(system, rita)).toEqual([officer]);
      expect(messageOf(await system.rank(bob, { newRankId: base }))).toContain(
        'now Member (rank 1), was Recruit (rank 1)',
      );
      expect(held(system, bob)).toEqual([]);
      expect((await system.rank(max, { newRankId: 1 })).status).toBe(200);
      expect(held(system, max)).toEqual([recruit]);
    }),
  );

  test(
    'is the base role if so configured',
    onOpenCloud(
      async (system) => {
        expect((await system.rank(rita, { newRankId: 1 })).status).toBe(200);
        expect(held(system, rita)).toEqual([]);
        expect((await system.rank(rita, { newRankId: recruit })).status).toBe(200);
        expect(held(system, rita)).toEqual([recruit]);
      },
      { rankOne: 'base' },
    ),
  );

  test(
    'is the custom role on a ladder, and the base role is below it',
    onOpenCloud(
      async (system) => {
        expect((await system.rank(bob, { newRankId: 1 })).status).toBe(200);
        expect(held(system, bob)).toEqual([recruit]);
        expect((await system.rank(bob, { newRankId: 20 })).status).toBe(200);
        expect(held(system, bob)).toEqual([officer]);
        const down = await system.rank(rita, { newRankId: base });
        expect([down.status, held(system, rita)]).toEqual([200, []]);
        expect((await system.changeOf(down)).demotion).toBe(true);
      },
      { ladder: [1, 10, 20] },
    ),
  );

  test(
    'is ambiguous once a second custom role has it',
    onOpenCloud(async (system) => {
      system.fake.group.roles.push({ id: 71_071, name: 'Cadet', rank: 1 });
      system.clock.skip(31_000);
      const answer = await system.rank(bob, { newRankId: 1 });
      expect([answer.status, codeOf(answer)]).toEqual([409, 'ambiguous_rank']);
      expect(messageOf(answer)).toContain(`71071 (Cadet), ${recruit} (Recruit)`);
      const body = { robloxUserId: bob };
      const step = await send(`${system.url}/v2/demote?placeid=1`, { method: 'POST', key: system.secret, body });
      expect([step.status, codeOf(step)]).toEqual([409, 'ambiguous_rank']);
      expect(messageOf(step)).toContain(
        `The next rank down is 1, which more than one role has. Set one of them by its role id instead: 71071 (Cadet), ${recruit} (Recruit).`,
      );
      expect((await system.rank(bob, { newRankId: 71_071 })).status).toBe(200);
      expect(held(system, bob)).toEqual([71_071]);
    }),
  );
});

describe('without the public role list', () => {
  test(
    'every change is made, because memberships reveal the base role',
    onOpenCloud(
      async (system) => {
        for (const newRankId of [20, 1, base]) expect((await system.rank(bob, { newRankId })).status).toBe(200);
        expect(held(system, bob)).toEqual([]);
        expect(system.fake.journal.requests('publicRoles')).toHaveLength(1);
      },
      { prepare: ({ faults }) => faults.add({ operation: 'publicRoles', kind: 'hang', times: 999 }) },
    ),
  );

  test(
    'a change is made within a short deadline even if the list hangs',
    onOpenCloud(async ({ rank }) => void expect((await rank(bob)).status).toBe(200), {
      deadlineMs: 1_500,
      tuning: { publicRolesTimeoutMs: 4_000 },
      prepare: ({ faults }) => faults.add({ operation: 'publicRoles', kind: 'hang', times: 999 }),
    }),
  );

  describe('and with memberships that do not reveal it either', () => {
    const refusal = (answer: Answer) => [answer.status, codeOf(answer), messageOf(answer).includes('have rank 1')];
    const rankOne = base < recruit ? [base, recruit] : [recruit, base];
    const rolesListed = (rolesField: 'absent' | 'withBase') => (fake: OpenCloudApp['fake']) => {
      fake.hasPublicRoles = false;
      fake.rolesField = rolesField;
      fake.group.removeMember(rita); // now, no member holds Recruit
    };

    test.each([
      { what: 'without a ladder', prepare: rolesListed('absent') },
      { what: 'on a ladder', prepare: rolesListed('absent'), ladder: [1, 10, 20, 50] },
      { what: 'on a ladder of ids', prepare: rolesListed('absent'), ladder: [...rankOne, 10, 20, 50] },
      { what: 'of members who list the base role', prepare: rolesListed('withBase') },
    ])(
      'changes that depend on the base role are refused, others are made, and the list is read once per 30 seconds: $what',
      ({ what: _, ...options }) =>
        onOpenCloud(async (system) => {
          const { fake, clock, rank, url, secret } = system;
          const step = (verb: string, robloxUserId: number) =>
            send(`${url}/v2/${verb}?placeid=1`, { method: 'POST', key: secret, body: { robloxUserId } });
          const refused = [
            await rank(bob, { newRankId: 1 }),
            await rank(bob, { newRankId: recruit }),
            await step('demote', bob),
            await rank(max),
            await step('promote', max),
          ];
          for (const answer of refused) expect(refusal(answer)).toEqual([503, 'platform_unavailable', true]);
          expect(fake.journal.writes()).toEqual([]);
          expect((await step('promote', bob)).status).toBe(200);
          expect(held(system, bob)).toEqual([officer]);
          expect(fake.journal.requests('publicRoles')).toHaveLength(1);

          fake.hasPublicRoles = true;
          clock.skip(31_000);
          expect((await rank(max)).status).toBe(200);
          expect(held(system, max)).toEqual([officer]);
          expect(fake.journal.requests('publicRoles')).toHaveLength(2);
          expect(fake.violations()).toEqual([]);
        }, options)(),
    );
  });
});
