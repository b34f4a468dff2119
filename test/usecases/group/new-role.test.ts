import { expect, test } from 'vitest';
import { codeOf } from '../../support/answers.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../../support/open-cloud-app.ts';

const { trainee, officer } = sampleRoles;
const { trainee: bob } = sampleUsers;

/** Makes a new role, General, of rank 90. Returns its id. */
function makeGeneral({ fake }: OpenCloudApp): number {
  const known = fake.group.role(officer) ?? expect.fail('no such role');
  const general = { ...known, id: known.id + 1, name: 'General', rank: 90 };
  fake.group.roles.push(general);
  return general.id;
}

test(
  'a held role that was created a moment ago counts like any other',
  onOpenCloud(async (system) => {
    const { fake, clock } = system;
    expect((await system.rank(bob)).status).toBe(200); // the roles are remembered from here on
    clock.skip(1_000);
    const general = makeGeneral(system);
    fake.group.setMember(bob, [trainee, general]);
    expect((await system.rank(bob)).status).toBe(200);
    expect(fake.group.held(bob)).not.toContain(general);
  }),
);

test(
  'a rank that was made after the roles were read is found, and an unknown rank does not make each request read them',
  onOpenCloud(async (system) => {
    const { fake, clock } = system;
    expect((await system.rank(bob)).status).toBe(200); // the roles are remembered from here on
    clock.skip(6_000);
    const general = makeGeneral(system);
    expect((await system.rank(bob, { newRankId: 90 })).status).toBe(200);
    expect(fake.group.held(bob)).toEqual([general]);

    const reads = fake.journal.requests('roles').length;
    for (let asked = 0; asked < 3; asked += 1) {
      expect(codeOf(await system.rank(bob, { newRankId: 91 }))).toBe('unknown_rank');
    }
    expect(fake.journal.requests('roles')).toHaveLength(reads);
  }),
);
