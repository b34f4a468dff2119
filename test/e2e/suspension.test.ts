import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Fault } from '../support/fake-open-cloud/faults.ts';
import { type FakeOpenCloud, sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { SteppedClock } from '../support/stepped-clock.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';

const { actor } = sampleUsers;
const { recruit, trainee, officer, captain, admin } = sampleRoles;

type Group = FakeOpenCloud['group'];

/** One member's suspension: the events, and then the suspension's state and the member's roles. */
interface Row {
  before?: number[];
  /** Changes to the group before the suspension ends. After each one, a daemon starts and notices it. */
  seen?: Array<(group: Group, member: number) => void>;
  /** Changes the group while no daemon is running. The suspension's end passes before the next daemon starts. */
  unseen?: (group: Group, member: number) => void;
  /** How Roblox fails when the suspension ends. */
  faults?: Array<Omit<Fault, 'userId'>>;
  meanwhile?: RegExp;
  state: string;
  roles: number[] | undefined;
}

const poll = { interval: 300, timeout: 30_000 };

const always = Number.POSITIVE_INFINITY;
const back = { state: 'ended', roles: [officer, captain] };

const leave = (group: Group, member: number) => group.removeMember(member);
const join = (group: Group, member: number) => group.setMember(member, []);

const rows: Record<string, Row> = {
  nothing: back,
  'a previous role is deleted': {
    before: [trainee, captain],
    unseen: (group) => {
      group.roles = group.roles.filter(({ id }) => id !== trainee);
    },
    state: 'ended',
    roles: [captain],
  },
  'the member leaves': { unseen: leave, state: 'forfeited', roles: undefined },
  'the member leaves, which is recorded, and rejoins after the end': {
    seen: [leave],
    unseen: join,
    state: 'forfeited',
    roles: [],
  },
  'the member leaves and rejoins, and is suspended again': { seen: [leave, join], state: 'ended', roles: [] },
  'the member leaves, rejoins and leaves': {
    seen: [leave, join],
    unseen: leave,
    state: 'forfeited',
    roles: undefined,
  },
  'an administrator changes the roles on Roblox': {
    unseen: (group, member) => group.setMember(member, [captain]),
    state: 'superseded',
    roles: [captain],
  },
  'a moderator takes the role of suspended members': { unseen: join, state: 'superseded', roles: [] },
  'an administrator adds a role on Roblox': {
    unseen: (group, member) => group.setMember(member, [recruit, officer]),
    state: 'superseded',
    roles: [recruit, officer],
  },
  'Roblox is down for this member': {
    faults: [{ operation: 'memberships', kind: 'status 503', times: always }],
    meanwhile: /^active platform_unavailable/,
    ...back,
  },
  'Roblox refuses all writes': {
    faults: [{ operation: 'assign', kind: 'status 429', headers: { 'retry-after': '1' }, times: always }],
    meanwhile: /^(active platform_busy|ending .* pending)/,
    ...back,
  },
  'the outcome of the return is unknown': {
    faults: [
      { operation: 'assign', kind: 'reset', when: 'after', times: always },
      { operation: 'memberships', kind: 'status 503', skip: 1, times: always },
    ],
    meanwhile: /^ending .* unknown$/,
    ...back,
  },
};

test.concurrent('suspensions end correctly although the daemon is down for a week and the Roblox key is then rejected', async ({
  expect,
}) => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  appendFileSync(home.path('rankd.yaml'), 'policy: { suspension: { role: Recruit }, breaker: { demotions: 50 } }\n');
  const clock = new SteppedClock(home.path('clock'));
  const members = Object.values(rows).map((row, index) => ({ userId: 21_000 + index, ...row }));
  const holds = async () => {
    const { suspensions } = await home.json<{ suspensions: Suspension[] }>('suspension', 'list', '--all');
    return members.map(({ userId }) => suspensions.find(({ rankeeId }) => rankeeId === userId));
  };
  {
    await using daemon = await world.startDaemon(clock.env);
    const { secret: key } = await home.json<{ secret: string }>('key', 'create', 'mod', '--scope', 'suspend');
    await home.json('whitelist', 'add', '1', '--key', 'mod');
    for (const { userId, before = [officer, captain] } of members) roblox.group.setMember(userId, before);
    await Promise.all(
      members.map(async ({ userId: robloxUserId }) => {
        const body = { robloxUserId, duration: '3d' };
        const answer = await daemon.post('/v2/suspend?placeid=1', { key, body });
        expect([answer.status, roblox.group.held(robloxUserId)]).toEqual([200, [recruit]]);
      }),
    );
  }
  for (const step of [0, 1]) {
    for (const { userId, seen = [] } of members) seen[step]?.(roblox.group, userId);
    // A starting daemon checks whether members have left.
    await using _daemon = await world.startDaemon(clock.env);
    const isSeen = async () => {
      const kept = await holds();
      return members.every(({ userId, seen = [] }, index) =>
        seen[step] === join
          ? roblox.group.held(userId)?.join() === String(recruit)
          : seen[step] !== leave || kept[index]?.awaySince !== null,
      );
    };
    await expect.poll(isSeen, poll).toBe(true);
  }
  for (const { unseen, userId } of members) unseen?.(roblox.group, userId);
  clock.step(7 * 86_400_000);
  roblox.credential.enabled = false;
  await using daemon = await world.startDaemon({ ...clock.env, RANKD_SERVER_DEADLINE: '2s' });
  await expect.poll(() => daemon.log).toContain('Roblox does not accept');
  expect((await holds()).map((hold) => hold?.state)).toEqual(members.map(() => 'active'));
  for (const { userId, faults = [] } of members) for (const fault of faults) roblox.faults.add({ ...fault, userId });
  roblox.credential.enabled = true;
  const reload = () => home.here(['reload']); // makes the daemon retry a dead key and failed holds at once
  await reload();
  const changes = async () => (await home.json<{ changes: Change[] }>('history', 'list', '--limit', '100')).changes;
  const outcomes = async () => {
    const made = await changes();
    return (await holds()).map((hold) => {
      const change = made.find(({ id }) => id === hold?.returnChangeId);
      return `${hold?.state} ${hold?.code} ${change?.state}`;
    });
  };
  await expect
    .poll(outcomes, poll)
    .toEqual(members.map(({ state, meanwhile = new RegExp(`^${state} null `) }) => expect.stringMatching(meanwhile)));
  roblox.faults.clear();
  await reload();
  const states = async () => (await holds()).map((hold) => hold?.state);
  await expect.poll(states, poll).toEqual(members.map(({ state }) => state));
  const finalRoles = members.map(({ userId }) => roblox.group.held(userId));
  expect(finalRoles).toEqual(members.map(({ roles }) => roles?.toSorted((a, b) => a - b)));
  const { message } = (await changes()).find(({ rankeeId }) => rankeeId === 21_001) ?? {};
  expect(message).toContain(`rankd could not give back role ${trainee}, which the group no longer lists.`);
  expect(roblox.violations()).toEqual([]);
});

const refusals = [
  { userId: 31_001, before: [officer], code: 'rank_not_allowed' }, // the policy now locks the role
  { userId: 31_002, before: [captain], code: 'above_acting_account' }, // the role was moved above the account
  { userId: 31_003, before: [trainee], code: 'above_acting_account' }, // the account has lost its rank
];

test.concurrent('a suspension whose roles cannot be given back is stuck: an alarm, doctor and status report it, and a reload retries it', async ({
  expect,
}) => {
  await using world = await openCloudHome();
  await using sink = await startWebhookSink();
  const { home, roblox } = world;
  const configured = readFileSync(home.path('rankd.yaml'), 'utf8');
  const configure = (more: string) =>
    writeFileSync(home.path('rankd.yaml'), `${configured}webhooks: { allow_private: [127.0.0.1] }\n${more}`);
  configure('');
  await home.here(['webhook', 'add', 'bot', '--events', 'alarms', '--no-test'], { input: sink.url });
  const clock = new SteppedClock(home.path('clock'));
  for (const { userId, before } of refusals) roblox.group.setMember(userId, before);
  {
    await using _daemon = await world.startDaemon(clock.env);
    for (const { userId } of refusals) {
      const { code } = await home.here(['rank', 'suspend', String(userId), '--for', '3d']);
      expect(code).toBe(0);
    }
  }
  configure('policy: { locked_roles: [20] }\n');
  const captains = roblox.group.roles.find(({ id }) => id === captain) ?? { rank: 0 };
  captains.rank = 210;
  roblox.group.setMember(actor, [trainee]);
  clock.step(4 * 86_400_000);
  await using _daemon = await world.startDaemon(clock.env);
  const status = async () => (await home.here(['status'])).stdout;
  const stuck = async () => {
    const [line = ''] = /STUCK: .* can't get the previous roles back/.exec(await status()) ?? [];
    return line.match(/Member \d+/g) ?? [];
  };
  await expect.poll(stuck, poll).toHaveLength(3);
  const eventTypes = () => sink.received.map(({ event }) => event.type);
  await expect.poll(eventTypes).toEqual(refusals.map(() => 'suspension.stuck'));
  const doctor = await home.here(['doctor']);
  for (const { userId } of refusals)
    expect(doctor.stdout).toMatch(new RegExp(`FAIL +suspension +Member ${userId} can't be given`));
  expect(doctor.code).toBe(5);

  roblox.group.setMember(actor, [admin]);
  const reload = async () => expect((await home.here(['reload'])).code).toBe(0);
  await reload();
  await expect.poll(stuck, poll).toHaveLength(2);
  const codes = async () => {
    const { suspensions } = await home.json<{ suspensions: Suspension[] }>('suspension', 'list');
    return suspensions.map(({ rankeeId, code }) => `${rankeeId} ${code}`).toSorted();
  };
  await expect.poll(codes, poll).toEqual(refusals.slice(0, 2).map(({ userId, code }) => `${userId} ${code}`));
  configure('');
  captains.rank = 50;
  await reload();
  await expect.poll(stuck, poll).toHaveLength(0);
  await expect
    .poll(() => refusals.map(({ userId }) => roblox.group.held(userId)))
    .toEqual(refusals.map(({ before }) => before));
  expect(eventTypes()).toHaveLength(3);
});

const flaws = [
  ['Nobody', 'policy.suspension.role does not fit the group: no role in the group is called "Nobody"'],
  ['200', 'which is not below the acting account'],
  ['20', 'which policy.locked_roles names'],
] as const;

test.concurrent.each(flaws)(
  'an unsuitable role for suspended members (%s) is reported by config check and by doctor',
  async (role, flaw) => {
    await using world = await openCloudHome();
    appendFileSync(world.home.path('rankd.yaml'), `policy: { locked_roles: [20], suspension: { role: ${role} } }\n`);
    for (const command of [['config', 'check'], ['doctor']]) {
      const { stdout, stderr } = await world.home.here(command);
      expect(stdout + stderr).toContain(flaw);
    }
  },
);

interface Suspension {
  rankeeId: number;
  state: string;
  code: string | null;
  awaySince: string | null;
  returnChangeId: string | null;
}

interface Change {
  id: string;
  rankeeId: number;
  state: string;
  message: string;
}
