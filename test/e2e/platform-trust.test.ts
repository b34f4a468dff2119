import { expect, test } from 'vitest';
import { sampleRoles } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';

test('unexpected behavior of Roblox is reported by status and doctor, and a reload resumes changes', async () => {
  await using world = await openCloudHome();
  const { home, roblox, secret } = world;
  const daemon = await world.serve();
  const rank = async (rankeeId: number) => {
    roblox.group.setMember(rankeeId, [sampleRoles.recruit, sampleRoles.trainee]);
    return (await daemon.rank(secret, { rankeeId, newRankId: 20 })).status;
  };
  roblox.assignReplaces = true;
  for (const userId of [20_001, 20_002, 20_003]) expect(await rank(userId)).toBe(200);
  expect(await rank(20_004)).toBe(503);

  const words = 'Roblox behaves unexpectedly';
  expect((await home.here(['status'])).stdout).toMatch(new RegExp(`^rank changes +STOPPED: ${words}`, 'm'));
  expect((await home.json<{ status: unknown }>('status')).status).toMatchObject({
    platformTrust: { stop: expect.stringContaining(words), believesAnswers: true },
  });
  const doctor = await home.here(['doctor', '--offline', '--json']);
  expect(doctor.code).toBe(5);
  expect(doctor.json<{ findings: unknown[] }>().findings).toContainEqual({
    check: 'behavior',
    grade: 'FAIL',
    text: expect.stringContaining(words),
    fix: expect.stringContaining('rankd reload'),
  });

  roblox.assignReplaces = false;
  await home.json('reload');
  expect((await home.here(['doctor', '--offline'])).code).toBe(0);
  expect(await rank(20_004)).toBe(200);
});
