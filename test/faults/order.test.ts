import { expect, test } from 'vitest';
import type { JournalEntry } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';

const { trainee: bob } = sampleUsers;
const { trainee, officer, captain } = sampleRoles;

/** rankd's limit on concurrent requests for each operation. */
const maxConcurrency = 64;

test('changes to one member are written one at a time, in order of arrival', () =>
  onOpenCloud(
    async (system) => {
      const { fake, app } = system;
      fake.latencyMs = 20;
      const asked: Array<ReturnType<OpenCloudApp['rank']>> = [];
      for (const newRankId of [20, 50, 10, 50, 20, 10]) {
        asked.push(system.rank(bob, { newRankId }));
        await expect.poll(() => app.requests.count, { interval: 1 }).toBe(asked.length);
      }
      const answers = await Promise.all(asked);
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
      const given = fake.journal.writes(bob).filter(({ operation }) => operation === 'assign');
      expect(given.map(({ roleId }) => roleId)).toEqual([officer, captain, trainee, captain, officer, trainee]);
      expect(fake.group.held(bob)).toEqual([trainee]);
    },
    { deadlineMs: 20_000 },
  )());

test('different members are changed concurrently, up to a limit', () =>
  onOpenCloud(
    async (system) => {
      const { fake } = system;
      fake.latencyMs = 200; // longer than the store takes to begin a hundred changes
      const members = Array.from({ length: 100 }, (_, index) => 20_000 + index);
      for (const userId of members) fake.group.setMember(userId, [trainee]);
      const answers = await Promise.all(members.map((userId) => system.rank(userId)));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      for (const operation of ['memberships', 'assign', 'unassign'] as const) {
        const most = maxConcurrent(fake.journal.requests(operation));
        expect(most).toBeGreaterThan(10);
        expect(most).toBeLessThanOrEqual(maxConcurrency);
      }
    },
    // A hundred concurrent changes are slow on a busy machine.
    { deadlineMs: 20_000, tuning: { perTryTimeoutMs: 5_000 } },
  )());

test('two concurrent commands that promote a member raise the member by two ranks', async () => {
  await using world = await openCloudHome();
  const { roblox, home } = world;
  roblox.latencyMs = 30;
  const promote = () => home.here(['rank', 'promote', String(bob)], { isInterrupted: true });
  const steps = await Promise.all([promote(), promote()]);
  expect(steps.map(({ code }) => code)).toEqual([0, 0]);
  expect(roblox.group.held(bob)).toEqual([captain]);
});

function maxConcurrent(entries: JournalEntry[]): number {
  const edges = entries.flatMap(({ at, endedAt = at }) => [
    { at, step: 1 },
    { at: endedAt, step: -1 },
  ]);
  let [now, most] = [0, 0];
  for (const { step } of edges.sort((a, b) => a.at - b.at || a.step - b.step)) {
    now += step;
    most = Math.max(most, now);
  }
  return most;
}
