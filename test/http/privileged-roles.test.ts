import { expect, test } from 'vitest';
import { deadlineIn } from '../../src/base/clock.ts';
import type { PrivilegedRoles } from '../../src/core/rules/rule.ts';
import { changeRank } from '../../src/usecases/change/change-rank.ts';
import { operate } from '../contracts/store/samples.ts';
import { codeOf, messageOf } from '../support/answers.ts';
import { type OpenCloudApp, openCloudApp, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';

/** In the sample group, a Captain (rank 50) is allowed to accept members, and an Admin (rank 200) to change ranks. */
const { captain, officer } = sampleRoles;
const thief = sampleUsers.officer;

/** Starts an app with the owner's API key, because Roblox shows the permissions of every role only to the owner. */
function onOwnersKey(privilegedRoles: PrivilegedRoles): Promise<OpenCloudApp> {
  return openCloudApp({
    policy: { privilegedRoles },
    prepare: ({ credential }) => Object.assign(credential, { userId: sampleUsers.owner }),
  });
}

test('at worst, with privileged roles allowed, a stolen key makes its thief an admin', async () => {
  await using system = await onOwnersKey('allow');
  expect((await system.rank(thief, { newRankId: 200 })).status).toBe(200);
  expect(system.fake.group.held(thief)).toEqual([sampleRoles.admin]);
});

test('at worst, with privileged roles left to the operator, a stolen key gives and takes none of them', async () => {
  await using system = await onOwnersKey('operator');
  const refused = [
    await system.rank(thief, { newRankId: 200 }),
    await system.rank(thief, { newRankId: 50 }),
    await system.rank(sampleUsers.otherAdmin, { newRankId: 20 }),
  ];
  expect(refused.map(codeOf)).toEqual(Array(3).fill('rank_not_allowed'));
  expect(refused.map(messageOf)[1]).toContain('Captain (rank 50) is a privileged role (it can accept members)');
  expect(system.fake.group.held(thief)).toEqual([officer]);
  expect((await system.rank(sampleUsers.trainee, { newRankId: 20 })).status).toBe(200);
});

test('a key marked as privileged may still give a privileged role, and the operator may take one', async () => {
  await using system = await onOwnersKey('operator');
  const id = (await system.app.store.findKey('main'))?.id ?? '';
  await operate(system.app).setRules({ keyId: id, rules: { isPrivileged: true } }, 'cli:ann@host');
  expect((await system.rank(thief, { newRankId: 50 })).status).toBe(200);

  await operate(system.app).setRules({ keyId: id, rules: { isPrivileged: null } }, 'cli:ann@host');
  expect(codeOf(await system.rank(thief, { newRankId: 20 }))).toBe('rank_not_allowed');
  const request = { rankerName: '', rankerId: 0, rankeeName: '', rankeeId: thief, newRankId: 20 };
  using deadline = deadlineIn(system.clock, system.app.deadlineMs);
  await changeRank(system.app, { caller: { by: 'cli:ann@host', dryRun: false }, request }, deadline);
  expect(system.fake.group.held(thief)).toEqual([officer]);
});

test('roles in the list are privileged in addition to those that Roblox shows as such', async () => {
  await using system = await onOwnersKey([20]);
  expect(codeOf(await system.rank(sampleUsers.trainee, { newRankId: 20 }))).toBe('rank_not_allowed');
  expect(codeOf(await system.rank(sampleUsers.trainee, { newRankId: 50 }))).toBe('rank_not_allowed');
});

test('a role whose permissions Roblox does not show counts as privileged only if the list names it', async () => {
  await using system = await openCloudApp({ policy: { privilegedRoles: 'operator' } });
  expect((await system.rank(thief, { newRankId: 50 })).status).toBe(200);
  await using listed = await openCloudApp({ policy: { privilegedRoles: [captain] } });
  expect(codeOf(await listed.rank(thief, { newRankId: 50 }))).toBe('rank_not_allowed');
});

test('if no high rank is set, the breaker counts members who get a privileged role', async () => {
  const members = Array.from({ length: 7 }, (_, index) => 20_001 + index);
  await using system = await openCloudApp({
    prepare: ({ credential, group }) => {
      credential.userId = sampleUsers.owner;
      for (const member of members) group.setMember(member, [officer]);
    },
  });
  const codes = [];
  for (const member of members) codes.push(codeOf(await system.rank(member, { newRankId: 50 })));
  expect(codes).toEqual([...Array(5).fill(undefined), 'key_paused', 'key_paused']);
  const [pause] = await system.app.store.listAudit({ action: 'key.pause', limit: 1 });
  expect(pause?.detail['reason']).toContain('more than 5 different members who have or would get a privileged role');
});
