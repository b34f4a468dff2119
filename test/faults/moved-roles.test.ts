import { describe, expect, test } from 'vitest';
import { deadlineIn } from '../../src/base/clock.ts';
import type { Scope } from '../../src/core/model.ts';
import { planList, runList } from '../../src/usecases/change/change-list.ts';
import { changeRank } from '../../src/usecases/change/change-rank.ts';
import { checkHold } from '../../src/usecases/holds/end-hold.ts';
import { undoMember } from '../../src/usecases/undo/undo-member.ts';
import { codeOf, messageOf } from '../support/answers.ts';
import type { FakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import {
  type OpenCloudApp,
  onOpenCloud,
  openCloudAppOn,
  sampleRoles,
  sampleUsers,
  send,
} from '../support/open-cloud-app.ts';

const { trainee, officer, captain } = sampleRoles;
const { trainee: bob, officer: eve, stranger: dan, actor, otherAdmin } = sampleUsers;
/** Roles are cached for longer, but a change must not rely on a cache this old. */
const laterMs = 10_000;
const policy = { maxRank: 50 };
const scopes: Scope[] = ['verify', 'rank', 'suspend'];
const day = 86_400_000;
const operator = { by: 'cli:ann@host', dryRun: false };
const request = { rankerId: 0, rankerName: '', rankeeId: bob, rankeeName: 'Bob', newRankId: officer };

function renumber({ group }: FakeOpenCloud, id: number, rank: number): void {
  group.roles = group.roles.map((role) => (role.id === id ? { ...role, rank } : role));
}

/** Makes the group's owner the acting account, so that only rankd's rules limit ranks. */
const asOwner = (fake: FakeOpenCloud) => {
  fake.credential.userId = sampleUsers.owner;
};

describe('while roles are cached, no change goes above a ceiling', () => {
  const post = ({ url, secret }: OpenCloudApp, path: string, body: unknown) =>
    send(`${url}${path}?placeid=1`, { method: 'POST', key: secret, body });
  const code = async (work: Promise<unknown>) => work.then(String, (error) => error.code);
  const entryPoints: Record<string, (system: OpenCloudApp) => Promise<unknown>> = {
    '/v1/ranker': async (system) => codeOf(await system.rank(bob, { newRankId: officer })),
    '/v2/rank': async (system) => codeOf(await post(system, '/v2/rank', { robloxUserId: bob, rank: 'Officer' })),
    '/v2/promote': async (system) => {
      renumber(system.fake, captain, 230); // otherwise, Captain would be the next rank up
      return codeOf(await post(system, '/v2/promote', { robloxUserId: bob }));
    },
    '/v2/demote': async (system) => codeOf(await post(system, '/v2/demote', { robloxUserId: eve })),
    '/v2/suspend': async (system) => codeOf(await post(system, '/v2/suspend', { robloxUserId: eve, duration: '1h' })),
    'noblox.js-server': async ({ url, secret: authorization }) => {
      const path = `/group/700/member/${bob}/rank?placeid=1`;
      const headers = { authorization, 'content-type': 'application/json' };
      const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: '{"rank":"Officer"}' });
      return Object(await answer.json()).code;
    },
    'a command': async ({ app, clock }) => {
      using deadline = deadlineIn(clock, 5_000);
      return (await changeRank(app, { caller: operator, request }, deadline)).change.code;
    },
    'a list': async ({ app }) => {
      const command = { step: undefined, request, command: 'rankd rank set', by: operator.by };
      const members = [{ line: 1, rankeeId: bob, rankeeName: 'Bob' }];
      const plan = await planList(app, command, members);
      const control = { stop: new AbortController().signal, report: () => undefined };
      const { results } = await runList(app, { plan, command, members }, control);
      return results.map((result) => 'error' in result && result.error.code).join();
    },
    'an undo': async ({ app }) => {
      const [change] = await app.store.listChanges({ rankeeId: dan, limit: 1 });
      const undo = { selection: { ids: [change?.id ?? ''] }, undoId: 'undo_1', ...operator };
      const undone = await undoMember(app, undo, { rankeeId: dan, rankeeName: '' });
      return 'error' in undone ? undone.error.code : undone.state;
    },
    'the end of a temporary rank': async ({ app }) => {
      const [hold] = await app.store.listHolds({ group: app.group.title, rankeeId: otherAdmin, limit: 1 });
      if (hold === undefined) return 'no hold';
      return code(checkHold(app, { hold, caller: operator, as: 'lifted' }));
    },
  };

  test.each(Object.keys(entryPoints))('not even through %s', (entryPoint) =>
    onOpenCloud(
      async (system) => {
        const { app, fake, clock } = system;
        // Both were Officers: Dan was demoted to Trainee, and the other member is a Trainee temporarily.
        for (const userId of [dan, otherAdmin]) fake.group.setMember(userId, [officer]);
        expect((await system.rank(dan, { newRankId: 10 })).status).toBe(200);
        using deadline = deadlineIn(clock, 5_000);
        const endsAt = clock.now() + 3_600_000;
        const temporary = { ...request, rankeeId: otherAdmin, newRankId: 10 };
        await changeRank(app, { caller: operator, request: temporary, hold: { kind: 'temporary', endsAt } }, deadline);

        clock.skip(laterMs);
        renumber(fake, officer, 240);
        fake.expectNoWrites();
        expect(await entryPoints[entryPoint]?.(system)).toBe('rank_not_allowed');
        expect(fake.violations()).toEqual([]);
      },
      { policy, prepare: asOwner, scopes: ['verify', 'rank', 'suspend'], compat: ['noblox-server'] },
    )(),
  );

  test('even if only the key sets the ceiling, whether the role is given or taken; a rank without a role is refused', () =>
    onOpenCloud(
      async (system) => {
        const { fake, clock } = system;
        const key = await system.newKey('narrow', { maxRank: 50 });
        expect((await system.rank(bob, { key })).status).toBe(200);
        expect((await system.rank(bob, { key, newRankId: 10 })).status).toBe(200);
        clock.skip(laterMs);
        renumber(fake, officer, 240);
        fake.expectNoWrites();
        const given = await system.rank(bob, { key, newRankId: officer });
        expect([given.status, codeOf(given)]).toEqual([403, 'rank_not_allowed']);
        expect(messageOf(given)).toContain(
          'Officer (rank 240) is above 50, the ceiling set by the max_rank of this key',
        );
        clock.skip(laterMs);
        renumber(fake, officer, 245);
        expect(messageOf(await system.rank(eve, { key, newRankId: 10 }))).toContain('Officer (rank 245) is above 50');
        clock.skip(laterMs);
        renumber(fake, officer, 246);
        expect(codeOf(await system.rank(bob, { key, newRankId: 20 }))).toBe('unknown_rank');
      },
      { prepare: asOwner },
    )());
});

test.each(['list', 'alone'] as const)(
  'a role that Roblox shows with two ranks is not given until it shows one (%s is stale)',
  (isBehind) =>
    onOpenCloud(
      async ({ fake, clock, rank }) => {
        expect((await rank(eve, { newRankId: 10 })).status).toBe(200);
        clock.skip(laterMs);
        fake.rolesBehind = { [isBehind]: structuredClone(fake.group.roles) };
        renumber(fake, officer, 240);
        fake.expectNoWrites();
        const answer = await rank(bob, { newRankId: officer });
        expect([answer.status, codeOf(answer)]).toEqual([503, 'platform_unavailable']);
        clock.skip(laterMs);
        fake.rolesBehind = {};
        expect(codeOf(await rank(bob, { newRankId: officer }))).toBe('rank_not_allowed');
      },
      { policy, prepare: asOwner },
    )(),
);

test.each(['list', 'alone'] as const)(
  'no step, undo or return gives a role that Roblox shows with two ranks (%s is stale)',
  (isBehind) =>
    onOpenCloud(
      async (system) => {
        const { app, fake, clock, url, secret: key } = system;
        const post = async (path: string, rest: object) =>
          codeOf(await send(`${url}/v2/${path}?placeid=1`, { method: 'POST', key, body: rest }));
        fake.group.setMember(dan, [officer]);
        fake.group.setMember(otherAdmin, [officer]);
        expect((await system.rank(dan, { newRankId: 10 })).status).toBe(200);
        expect(await post('suspend', { robloxUserId: otherAdmin, duration: '1h' })).toBeUndefined();
        const [change] = await app.store.listChanges({ rankeeId: dan, limit: 1 });
        clock.skip(laterMs);
        fake.rolesBehind = { [isBehind]: structuredClone(fake.group.roles) };
        renumber(fake, officer, 45);
        fake.expectNoWrites();
        expect(await post('promote', { robloxUserId: bob })).toBe('platform_unavailable');
        clock.skip(laterMs);
        expect(await post('unsuspend', { robloxUserId: otherAdmin })).toBe('platform_unavailable');
        clock.skip(laterMs);
        const undo = { selection: { ids: [change?.id ?? ''] }, undoId: 'undo_1', ...operator };
        const undone = undoMember(app, undo, { rankeeId: dan, rankeeName: '' });
        await expect(undone).rejects.toMatchObject({ code: 'platform_unavailable' });
      },
      { policy, prepare: asOwner, scopes },
    )(),
);

describe('while roles are cached, no refusal is repeated that the current roles do not justify', () => {
  const suspend = ({ url, secret: key }: OpenCloudApp) =>
    send(`${url}/v2/suspend?placeid=1`, { method: 'POST', key, body: { robloxUserId: bob, duration: '1h' } });
  const suspended = { id: 66_000_005, name: 'Suspended', rank: 5 };

  test('configuration_misfit', () =>
    onOpenCloud(
      async (system) => {
        const { fake, clock } = system;
        const roles = fake.group.roles;
        fake.group.roles = roles.filter(({ id }) => id !== suspended.id);
        clock.skip(31_000);
        expect(codeOf(await suspend(system))).toBe('configuration_misfit');
        fake.group.roles = roles;
        clock.skip(laterMs);
        expect((await suspend(system)).status).toBe(200);
      },
      {
        ...{ prepare: ({ group }) => void group.roles.push(suspended), scopes },
        policy: { suspension: { role: 'Suspended', maxMs: day } },
      },
    )());

  test('rank_not_allowed', () =>
    onOpenCloud(
      async ({ fake, clock, rank }) => {
        expect(codeOf(await rank(bob, { newRankId: 5 }))).toBe('rank_not_allowed');
        clock.skip(laterMs);
        renumber(fake, suspended.id, 6);
        renumber(fake, officer, 5);
        expect((await rank(bob, { newRankId: 5 })).status).toBe(200);
        expect(fake.group.held(bob)).toEqual([officer]);
      },
      { prepare: ({ group }) => void group.roles.push(suspended), ladder: [trainee, officer, captain] },
    )());
});

test('a private role that the member holds counts with its current rank', () =>
  onOpenCloud(
    async ({ fake, clock, url, secret: key }) => {
      const role = { id: 66_000_040, name: 'Private', rank: 40, isPrivate: true };
      fake.group.roles.push(role);
      fake.group.setMember(bob, [trainee, role.id]);
      fake.group.setMember(eve, [captain]);
      const ask = async (rank: number) => {
        const body = { robloxUserId: bob, rank, rankerId: eve };
        return codeOf(await send(`${url}/v2/rank?placeid=1`, { method: 'POST', key, body }));
      };
      expect(await ask(officer)).toBeUndefined();
      clock.skip(laterMs);
      renumber(fake, role.id, 60);
      expect(await ask(trainee)).toBe('ranker_not_allowed');
    },
    { policy: { rankerCheck: 'verify' }, prepare: asOwner, ladder: [trainee, officer] },
  )());

test('the response and the history show the role as it was when it was given', () =>
  onOpenCloud(
    async (system) => {
      const { fake, clock } = system;
      expect((await system.rank(eve, { newRankId: 10 })).status).toBe(200);
      clock.skip(laterMs);
      renumber(fake, officer, 45);
      const answer = await system.rank(bob, { newRankId: officer });
      expect(messageOf(answer)).toContain('Bob (1001) is now Officer (rank 45), was Trainee (rank 10).');
      const { roles, message } = await system.changeOf(answer);
      expect(message).toContain('is now Officer (rank 45)');
      expect(roles).toContainEqual({ id: officer, name: 'Officer', rank: 45 });
    },
    { policy },
  )());

test.each(['role', 'roles'] as const)('a change whose role cannot be confirmed is not made (%s)', (operation) =>
  onOpenCloud(
    async ({ fake, clock, rank }) => {
      expect((await rank(eve, { newRankId: 10 })).status).toBe(200);
      clock.skip(laterMs);
      fake.expectNoWrites();
      fake.faults.add({ operation, kind: 'status 500', times: 1_000 });
      expect(codeOf(await rank(bob))).toBe('platform_unavailable');
      fake.faults.clear();
      clock.skip(laterMs);
      fake.budgets.use(operation, 1_000);
      expect(codeOf(await rank(bob))).toBe('platform_busy');
    },
    { policy, deadlineMs: 1_500 },
  )(),
);

test.each(['/v1/ranker', '/v2/promote', '/v2/suspend', '/v2/unsuspend'])(
  'a caller waits for at most three sequential calls, even if the roles must be confirmed: %s',
  async (path) => {
    const clock = new ManualClock();
    const latencyMs = 150;
    await using system = await clock.passUntil(
      openCloudAppOn(clock, { fake: { latencyMs }, deadlineMs: 20_000, readLagMs: 8_000, policy, scopes }),
    );
    const { fake, url, secret: key } = system;
    const post = (path: string) => {
      const body = { robloxUserId: bob, duration: '1h' };
      return clock.passUntil(send(`${url}${path}?placeid=1`, { method: 'POST', key, body }));
    };
    await clock.advance(15_000);
    // Lets rankd read the acting account.
    expect((await clock.passUntil(system.rank(eve, { newRankId: 10 }))).status).toBe(200);
    // rankd guesses the target of a step from the role that it gave last. A wrong guess would cost another read.
    if (path === '/v2/promote') expect((await clock.passUntil(system.rank(bob))).status).toBe(200);
    if (path === '/v2/unsuspend') expect((await post('/v2/suspend')).status).toBe(200);
    await clock.advance(laterMs);
    const [askedAt, before] = [clock.monotonic(), fake.journal.entries.length];
    const answer = path === '/v1/ranker' ? clock.passUntil(system.rank(bob)) : post(path);
    expect((await answer).status).toBe(200);
    const writes = { '/v2/suspend': ['unassign'], '/v2/unsuspend': ['assign'] }[path] ?? ['assign', 'unassign'];
    expect(
      fake.journal.entries
        .slice(before)
        .map(({ operation }) => operation)
        .filter((operation) => operation !== 'user') // the daemon may look up names at any time
        .toSorted(),
    ).toEqual(['memberships', 'role', 'roles', ...writes].toSorted());
    expect(clock.monotonic() - askedAt).toBeLessThan((2 + writes.length) * latencyMs);
  },
);

test('a change to a list of members confirms the roles once per two seconds, not once per member', () =>
  onOpenCloud(async ({ app, fake, clock }) => {
    const members = Array.from({ length: 20 }, (_, line) => ({ line, rankeeId: 6_000 + line, rankeeName: '' }));
    for (const { rankeeId } of members) fake.group.setMember(rankeeId, [trainee]);
    clock.skip(laterMs);
    const before = fake.journal.entries.length;
    const begun = clock.monotonic();
    const command = { step: undefined, request, command: 'rankd rank set', by: operator.by };
    const plan = await planList(app, command, members);
    const control = { stop: new AbortController().signal, report: () => undefined };
    const { results } = await runList(app, { plan, command, members }, control);
    expect(results.filter(({ state }) => state === 'changed')).toHaveLength(members.length);
    const most = 1 + Math.ceil((clock.monotonic() - begun) / 2_000);
    const reads = fake.journal.entries.slice(before).map(({ operation }) => operation);
    for (const one of ['role', 'roles']) expect(reads.filter((read) => read === one).length).toBeLessThanOrEqual(most);
  })());

describe('a refusal because the acting account ranks too low is not repeated from the cache', () => {
  const director = { id: 66_000_240, name: 'Director', rank: 240, changeRank: true };

  test('once the account has a higher role, a change is made after 5 s', () =>
    onOpenCloud(
      async ({ fake, clock, rank }) => {
        expect(codeOf(await rank(bob, { newRankId: 240 }))).toBe('above_acting_account');
        renumber(fake, sampleRoles.admin, 250);
        clock.skip(5_000);
        expect((await rank(bob, { newRankId: 240 })).status).toBe(200);
        fake.group.setMember(actor, [trainee]);
        clock.skip(61_000);
        const reads = () => fake.journal.requests('introspect').length;
        expect(codeOf(await rank(eve, { newRankId: 240 }))).toBe('above_acting_account');
        const soFar = reads();
        expect(codeOf(await rank(eve, { newRankId: 240 }))).toBe('above_acting_account');
        expect(reads()).toBe(soFar); // repeated requests cost no calls
      },
      { prepare: ({ group }) => void group.roles.push(director) },
    )());
});

test('a member of a list selected by a role is refused after losing that role before their turn', () =>
  onOpenCloud(async ({ app }) => {
    const command = { step: undefined, request, holding: trainee, command: 'rankd rank set', by: operator.by };
    const members = [bob, eve].map((rankeeId) => ({ rankeeId, rankeeName: '' }));
    const plan = await planList(app, command, members);
    const control = { stop: new AbortController().signal, report: () => undefined };
    const { results } = await runList(app, { plan, command, members }, control);
    expect(results.toSorted((one, other) => one.rankeeId - other.rankeeId)).toMatchObject([
      { rankeeId: bob, state: 'changed' },
      {
        ...{ rankeeId: eve, state: 'refused' },
        error: {
          code: 'rank_differs',
          message: `Member ${eve} no longer holds Trainee (rank 10). Nothing was changed.`,
        },
      },
    ]);
  })());
