import { once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';

const { trainee, officer, captain } = sampleRoles;

interface List {
  list: { id: string; members: Array<{ line: number; rankeeId: number; state: string; code: string | null }> };
}

/** Adds members who hold Trainee, lists them in passed.txt, and turns the breaker off. */
function withTrainees({ home, roblox }: OpenCloudHome, count: number): number[] {
  appendFileSync(home.path('rankd.yaml'), 'policy: { breaker: { enabled: false } }\n');
  const members = Array.from({ length: count }, (_, index) => 30_000_000_000 + index);
  for (const userId of members) roblox.group.setMember(userId, [trainee]);
  writeFileSync(home.path('passed.txt'), `# passed the training\n${members.join('\n')}\n`);
  return members;
}

const args = ['rank', 'promote', '--file', 'passed.txt', '-y'];

const byRole = ['rank', 'promote', '--holding', 'Trainee', '-y'];

test('each holder of a role is promoted once, although SIGKILL ends the first command half-way', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const members = withTrainees(system, 12);
  const holders = [...members, sampleUsers.trainee];
  roblox.group.setMember(sampleUsers.traineeAndCaptain, [captain]);
  roblox.latencyMs = 200;
  const first = home.start(byRole);
  const ended = once(first, 'exit');
  const heldTrainee = () => holders.filter((userId) => roblox.group.held(userId)?.includes(trainee)).length;
  await expect.poll(heldTrainee, { interval: 5, timeout: 30_000 }).toBeLessThan(13);
  first.kill('SIGKILL');
  await ended;
  roblox.latencyMs = 0;
  const { list } = await home.json<List>(...byRole);
  expect(list.members.length).toBeLessThan(13); // members who were promoted no longer hold Trainee
  expect(list.members.filter(({ state }) => state !== 'changed' && state !== 'done')).toEqual([]);
  expect(holders.map((userId) => roblox.group.held(userId))).toEqual(holders.map(() => [officer]));
  const { events } = await home.json<{ events: Array<{ subject: string }> }>('audit', 'list', '--action', 'rank.list');
  expect(events).toMatchObject(['end', 'begin'].map((does) => ({ subject: list.id, detail: { does } })));
  expect(roblox.violations()).toEqual([]);
}, 60_000);

test.each([['SIGKILL'], ['SIGINT']] as const)(
  'a list that ends half-way by %s is continued by the same command, and no member is promoted twice',
  async (signal) => {
    await using system = await openCloudHome();
    const { home, roblox } = system;
    const members = withTrainees(system, 12);
    await using _daemon = await system.startDaemon();
    const written = roblox.journal.writes().length;
    roblox.latencyMs = 200;
    const first = home.start(args);
    const ended = Promise.all([text(first.stdout), text(first.stderr), once(first, 'exit')]);
    await expect.poll(() => roblox.journal.writes().length - written, { interval: 5 }).toBeGreaterThan(5);
    first.kill(signal);
    const [out, , [code]] = await ended;
    if (signal === 'SIGINT') {
      expect(code).toBe(130);
      expect(out).toMatch(/^list_\w+: of 12 members, \d+ changed; \d+ not reached\.\n$/m);
    }
    roblox.latencyMs = 0;
    const { list } = await home.json<List>(...args);
    const states = list.members.map(({ state }) => state);
    expect(new Set(states)).toEqual(new Set(['done', 'changed']));
    expect(states).toHaveLength(12);
    expect(members.map((userId) => roblox.group.held(userId))).toEqual(members.map(() => [officer]));
    const again = await home.json<List>(...args); // the list is complete, so this command starts a new one
    expect(again.list.id).not.toBe(list.id);
    expect(new Set(again.list.members.map(({ state }) => state))).toEqual(new Set(['changed']));
    expect(roblox.violations()).toEqual([]);
  },
  60_000,
);

test('all names are looked up before the first change, and an unknown one prevents all changes', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const lookUpCount = () => roblox.journal.requests('userNames').length;
  writeFileSync(home.path('passed.txt'), 'Newcomer\n@OldNewcomer\nNo_Such_User\nPatrol_Pat\n');
  const refused = await home.run(args);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining(
      'line 2 (Newcomer (1001) used to be called OldNewcomer: use 1001 or @Newcomer), line 3 (No user is called No_Such_User). Nothing was changed.',
    ),
  ]);
  expect([lookUpCount(), roblox.journal.writes()]).toEqual([1, []]);
  writeFileSync(home.path('passed.txt'), 'Newcomer\nPatrol_Pat\n');
  const { list } = await home.json<List>(...args);
  expect(list.members).toMatchObject([
    { line: 1, rankeeId: sampleUsers.trainee, state: 'changed' },
    { line: 2, rankeeId: sampleUsers.officer, state: 'changed' },
  ]);
});
