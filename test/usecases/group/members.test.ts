import { expect, test } from 'vitest';
import { callWithin } from '../../../src/ports/platform.ts';
import { listMembers } from '../../../src/usecases/group/members.ts';
import { sampleRoles, sampleUsers } from '../../support/fake-open-cloud/index.ts';
import { onOpenCloud } from '../../support/open-cloud-app.ts';

const { captain } = sampleRoles;
const veteran = sampleUsers.traineeAndCaptain;

test(
  'a member list includes the names that rankd knows, retries failed pages and gives up on endless empty pages',
  onOpenCloud(async ({ app, fake, clock }) => {
    using call = callWithin(clock, 10_000, 'operator');
    const list = (after?: string) => listMembers(app, { role: captain, limit: 100, after }, call);
    await app.store.storeUserName({ id: veteran, name: 'Veteran_Vic', at: clock.now() }, { since: 0 });
    fake.faults.add({ operation: 'memberships', kind: 'status 503', times: 3 });
    const { members, next } = await list();
    expect(members).toContainEqual({ id: veteran, name: 'Veteran_Vic' });
    expect(members.filter(({ name }) => name === '')).toHaveLength(members.length - 1);
    expect(next).toBeUndefined();
    for (let page = 0; page < 20; page += 1) {
      const body = `{"groupMemberships":[],"nextPageToken":"${page}"}`;
      fake.faults.add({ operation: 'memberships', kind: 'body', body });
    }
    await expect(list()).rejects.toMatchObject({ code: 'platform_rejected' });
  }),
);
