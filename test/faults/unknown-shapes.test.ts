import { describe, expect, test, vi } from 'vitest';
import { deadlineIn } from '../../src/base/clock.ts';
import { changeRank } from '../../src/usecases/change/change-rank.ts';
import { listGroupRoles } from '../../src/usecases/group/group.ts';
import { liftHold } from '../../src/usecases/holds/holds.ts';
import { undoMember } from '../../src/usecases/undo/undo-member.ts';
import { codeOf, messageOf } from '../support/answers.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers, send } from '../support/open-cloud-app.ts';

const { trainee: bob, officer: eve } = sampleUsers;
const { base, trainee, officer } = sampleRoles;
const readyz = ({ url }: OpenCloudApp) => send(`${url}/readyz`, {});
/** Longer than the group's data is cached. */
const longMs = 61_000;

describe('key scopes in an unknown shape', () => {
  test.each([
    ['none', []],
    ['no list', { group: 'write' }],
    ['the operation in the name', [{ name: 'group:write', operations: null }]],
    ['no operations', [{ name: 'group', operations: null }]],
    ['no objects', ['group:write']],
  ])('(%s) cause no change to be refused', (_what, oddScopes) =>
    onOpenCloud(
      async (system) => {
        expect((await system.rank(bob)).status).toBe(200);
        expect((await readyz(system)).status).toBe(200);
      },
      { prepare: ({ credential }) => Object.assign(credential, { oddScopes }) },
    )(),
  );

  test('without group:write cause a warning, and refusals once Roblox has denied a write', () =>
    onOpenCloud(
      async (system) => {
        const { fake, logLines } = system;
        expect(
          logLines.filter((line) => /does not list group:write .* give the key that scope/.test(line)),
        ).toHaveLength(1);
        expect((await system.rank(bob)).status).toBe(200);
        fake.faults.add({ operation: 'assign', kind: 'status 403', body: '{"code":"X","message":"no scope"}' });
        expect((await system.rank(eve, { newRankId: 50 })).status).toBe(502);
        fake.expectNoWrites();
        const refused = await system.rank(eve, { newRankId: 50 });
        expect([refused.status, codeOf(refused)]).toEqual([502, 'platform_credential']);
        expect(fake.violations()).toEqual([]);
      },
      {
        prepare: ({ credential }) =>
          Object.assign(credential, { oddScopes: [{ name: 'asset', operations: ['read'] }] }),
      },
    )());
});

test.each(['status 403', 'status 404'] as const)(
  'a key that Roblox does not describe (%s) is used anyway, with a warning',
  (kind) =>
    onOpenCloud(
      async (system) => {
        expect((await system.rank(bob)).status).toBe(200);
        expect((await readyz(system)).status).toBe(200);
        const alarms = system.logLines.filter((line) => /"level":"(warn|error)"/.test(line));
        expect(alarms).toEqual([expect.stringContaining('Roblox does not report the state of the Roblox key')]);
      },
      {
        prepare: ({ faults }) => faults.add({ operation: 'introspect', kind, body: '<html>no</html>', times: 10_000 }),
      },
    )(),
);

test('a group that the key may not read prevents no change if roles and members can be read', () =>
  onOpenCloud(
    async (system) => {
      expect((await system.rank(bob)).status).toBe(200);
      expect((await readyz(system)).status).toBe(200);
      expect((await system.rank(sampleUsers.actor)).status).toBe(403);
      expect(system.fake.journal.requests('group').length).toBeGreaterThan(0);
      expect(system.app.deadCredential()).toBeUndefined();
    },
    { prepare: ({ faults }) => faults.add({ operation: 'group', kind: 'status 403', times: 10_000 }) },
  )());

test('in a group that Roblox has migrated, a role of rank 255 that the ladder does not name is an ordinary role', () =>
  onOpenCloud(
    async (system) => {
      expect((await system.rank(bob)).status).toBe(200);
      expect(system.fake.group.held(bob)).toEqual([77_000_255, officer].sort((a, b) => a - b));
      expect(codeOf(await system.rank(sampleUsers.owner))).toBe('above_acting_account');
    },
    {
      ladder: [10, 20, 50],
      prepare: (fake) => {
        fake.credential.userId = sampleUsers.owner;
        fake.group.roles.push({ id: 77_000_255, name: 'Co-owner', rank: 255 });
        fake.group.setMember(bob, [trainee, 77_000_255]);
      },
    },
  )());

test.each([{ ladder: [10, 20, 50] }, {}])(
  'a base role that the list omits is taken from the public list, so members without another role can be ranked (%o)',
  (options) =>
    onOpenCloud(
      async (system) => {
        const answer = await system.rank(sampleUsers.memberOnly);
        expect(messageOf(answer)).toContain('is now Officer (rank 20), was Member (rank 1).');
        expect((await system.changeOf(answer)).rolesBefore).toEqual([base]);
      },
      {
        ...options,
        fake: { age: 'new' },
        prepare: ({ group }) => {
          group.roles = group.roles.map((role) => ({ ...role, isPrivate: role.id === base }));
        },
      },
    )(),
);

test('a base role that the list omits gets its real name once it can be read', () =>
  onOpenCloud(
    async ({ app, call, clock }) => {
      const nameOfBase = async () =>
        (await listGroupRoles(app, call())).find(({ role }) => role.id === base)?.role.name;
      expect(await nameOfBase()).toBe('Member');
      clock.skip(61_000);
      expect(await nameOfBase()).toBe('Visitor');
    },
    {
      fake: { age: 'new' },
      prepare: ({ group, faults }) => {
        group.roles = group.roles.map((role) =>
          role.id === base ? { ...role, name: 'Visitor', isPrivate: true } : role,
        );
        faults.add({ operation: 'role', kind: 'status 400' });
      },
    },
  )());

test('in a group that Roblox has migrated, a member with the owner’s rank is not called the owner, and is not changed', () =>
  onOpenCloud(
    async (system) => {
      system.fake.expectNoWrites(bob);
      const refused = await system.rank(bob);
      expect([refused.status, codeOf(refused)]).toEqual([403, 'rank_not_allowed']);
      expect(messageOf(refused)).toContain('Co-owner (rank 255) is above 254, the ceiling set by policy.max_rank');
      expect(messageOf(await system.rank(eve, { newRankId: 77_000_255 }))).toContain('has the rank of the owner role');
      expect((await system.rank(eve, { newRankId: 50 })).status).toBe(200);
      const listed = await listGroupRoles(system.app, system.call());
      expect(listed.flatMap(({ role }) => (role.rank === 255 ? [[role.name, role.kind]] : []))).toEqual([
        ['Owner', 'owner'],
        ['Co-owner', 'custom'],
      ]);
      expect(system.fake.violations()).toEqual([]);
    },
    {
      prepare: (fake) => {
        fake.migration = 'Migrated';
        fake.group.roles.push({ id: 77_000_255, name: 'Co-owner', rank: 255 });
        fake.group.setMember(bob, [trainee, 77_000_255]);
      },
    },
  )());

describe('a role that the list lacks', () => {
  const general = { id: 77_000_000, name: 'General', rank: 90, isPrivate: true };
  const giveGeneral = ({ group }: OpenCloudApp['fake']) => {
    group.roles.push(general);
    group.setMember(bob, [trainee, general.id]);
  };

  const withGeneral = (...ids: number[]) => [general.id, ...ids].sort((a, b) => a - b);
  const warnings = ({ logLines }: OpenCloudApp) => logLines.filter((line) => /"level":"(warn|error)"/.test(line));

  test.each([{ ladder: [10, 20, 50] }, {}])(
    'prevents no change, stays with each member, and raises no alarm: %o',
    (options) =>
      onOpenCloud(
        async (system) => {
          const { fake, clock, app } = system;
          for (let userId = 3_001; userId <= 3_005; userId += 1) {
            fake.group.setMember(userId, [trainee, general.id]);
            const answer = await system.rank(userId);
            expect([answer.status, codeOf(answer)]).toEqual([200, undefined]);
            expect(fake.group.held(userId)).toEqual(withGeneral(officer));
            expect(await system.changeOf(answer)).toMatchObject({
              rolesBefore: withGeneral(base, trainee),
              rolesAfter: withGeneral(base, officer),
            });
          }
          const reads = fake.journal.requests('role').filter(({ path }) => path.endsWith(String(general.id)));
          expect(reads).toHaveLength(1); // the role is cached like the list
          clock.skip(longMs);
          await vi.waitFor(() => expect(app.trust.reads).toEqual([]), 10_000);
          expect(warnings(system)).toEqual([]);
        },
        { prepare: giveGeneral, ...options },
      )(),
  );

  test('counts for the acting account', () =>
    onOpenCloud(
      async (system) => {
        expect((await system.rank(bob)).status).toBe(200);
      },
      {
        prepare: ({ group }) => {
          group.roles.push({ id: 77_000_200, name: 'Staff', rank: 210, changeRank: true, isPrivate: true });
          group.setMember(sampleUsers.actor, [77_000_200]);
        },
      },
    )());

  test('is reported if changes do remove it, and no further change begins', () =>
    onOpenCloud(
      async (system) => {
        const { fake } = system;
        fake.assignReplaces = true;
        for (let userId = 3_001; userId <= 3_003; userId += 1) {
          fake.group.setMember(userId, [trainee, general.id]);
          await system.rank(userId);
        }
        expect(codeOf(await system.rank(bob))).toBe('platform_unavailable');
        expect(warnings(system)).toEqual(
          expect.arrayContaining([expect.stringMatching(new RegExp(`"vanished":\\[${general.id}\\]`))]),
        );
      },
      { prepare: giveGeneral, ladder: [10, 20, 50] },
    )());

  test('survives a suspension, its end and an undo, even if Roblox denies that it exists', () =>
    onOpenCloud(
      async (system) => {
        const { app, fake, clock } = system;
        fake.faults.add({ operation: 'role', kind: 'status 404', times: 1_000 });
        const call = () => ({ ...system.call(), deadlineAt: clock.monotonic() + 5_000 });
        const operator = { by: 'cli:ann@host', dryRun: false };
        const request = { rankerId: 0, rankerName: '', rankeeId: bob, rankeeName: 'Bob', newRankId: 0 };
        using deadline = deadlineIn(clock, 5_000);
        const begun = await changeRank(app, { caller: operator, request, hold: { kind: 'suspension' } }, deadline);
        expect(begun.change).toMatchObject({ state: 'applied', rolesAfter: withGeneral(base) });
        expect(fake.group.held(bob)).toEqual([general.id]);
        await liftHold(app, { rankeeId: bob, caller: operator, force: false }, call());
        expect(fake.group.held(bob)).toEqual(withGeneral(trainee));
        const ranked = await system.rank(bob);
        const selection = { ids: [(await system.changeOf(ranked)).id] };
        const undone = await undoMember(
          app,
          { selection, undoId: 'undo_1', by: operator.by, dryRun: false },
          { rankeeId: bob, rankeeName: 'Bob' },
        );
        expect(undone.state).toBe('put_back');
        expect(fake.group.held(bob)).toEqual(withGeneral(trainee));
        expect(warnings(system)).toEqual([]);
      },
      { prepare: giveGeneral },
    )());
});

test('a list whose last page links to the first is read once', () =>
  onOpenCloud(
    async (system) => {
      expect((await system.rank(bob)).status).toBe(200);
      expect(system.fake.journal.requests('roles').length).toBeLessThan(8);
    },
    {
      prepare: (fake) => {
        fake.pagesRepeat = true;
      },
    },
  )());

test('a group that Roblox has locked is not reported as a refused key, and the key works again once the group is unlocked', () =>
  onOpenCloud(async (system) => {
    const { fake, clock, app } = system;
    clock.skip(longMs);
    fake.group.locked = true;
    const refused = await system.rank(bob);
    expect([refused.status, codeOf(refused)]).toEqual([502, 'platform_credential']);
    expect(messageOf(refused)).toMatch(
      /The Roblox key is not allowed to read this \(403 PERMISSION_DENIED: The group is locked\.\)/,
    );
    expect(app.deadCredential()).toBeUndefined();
    fake.group.locked = false;
    expect((await system.rank(bob)).status).toBe(200);
  })());

describe('/readyz, which anyone may request', () => {
  test.each(['memberships', 'roles', 'introspect'] as const)(
    'does not make rankd call Roblox repeatedly while %s fail, and its response does not change',
    (operation) =>
      onOpenCloud(async (system) => {
        const { fake, clock } = system;
        clock.skip(longMs);
        fake.faults.add({ operation, kind: 'status 501', times: 10_000 });
        const first = (await readyz(system)).status;
        const requestCount = fake.journal.entries.length;
        for (let n = 0; n < 100; n += 1) expect((await readyz(system)).status).toBe(first);
        expect(fake.journal.entries.length - requestCount).toBeLessThan(6);
        expect(first).toBe(operation === 'introspect' ? 200 : 503); // changes do not need introspection
        fake.faults.clear();
        clock.skip(5_000);
        expect((await readyz(system)).status).toBe(200);
      })(),
  );
});
