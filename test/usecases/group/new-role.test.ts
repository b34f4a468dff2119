import { expect, test } from 'vitest';
import { codeOf } from '../../support/answers.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../../support/open-cloud-app.ts';

const { trainee, officer } = sampleRoles;
const { trainee: bob } = sampleUsers;

function addGeneral({ fake }: OpenCloudApp): number {
  const known = fake.group.role(officer) ?? expect.fail('no such role');
  const general = { ...known, id: known.id + 1, name: 'General', rank: 90 };
  fake.group.roles.push(general);
  return general.id;
}

test(
  'a role that was created after the roles were cached counts for its holder',
  onOpenCloud(async (system) => {
    const { fake, clock } = system;
    expect((await system.rank(bob)).status).toBe(200); // the roles are cached from here on
    clock.skip(1_000);
    const general = addGeneral(system);
    fake.group.setMember(bob, [trainee, general]);
    expect((await system.rank(bob)).status).toBe(200);
    expect(fake.group.held(bob)).not.toContain(general);
  }),
);

test(
  'a rank created after the roles were cached is found, and an unknown rank does not cause a read of the roles each time',
  onOpenCloud(async (system) => {
    const { fake, clock } = system;
    expect((await system.rank(bob)).status).toBe(200); // the roles are cached from here on
    clock.skip(6_000);
    const general = addGeneral(system);
    expect((await system.rank(bob, { newRankId: 90 })).status).toBe(200);
    expect(fake.group.held(bob)).toEqual([general]);

    const reads = fake.journal.requests('roles').length;
    for (let count = 0; count < 3; count += 1) {
      expect(codeOf(await system.rank(bob, { newRankId: 91 }))).toBe('unknown_rank');
    }
    expect(fake.journal.requests('roles')).toHaveLength(reads);
  }),
);
