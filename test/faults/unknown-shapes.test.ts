import { describe, expect, test } from 'vitest';
import { codeOf, messageOf } from '../support/answers.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers, send } from '../support/open-cloud-app.ts';

const { trainee: bob, officer: eve } = sampleUsers;
const { trainee, officer } = sampleRoles;
const readyz = ({ url }: OpenCloudApp) => send(`${url}/readyz`, {});
/** Longer than anything that was read of the group is remembered. */
const longMs = 61_000;

describe('scopes of the key in a shape that nobody has seen yet', () => {
  test.each([
    ['none', []],
    ['no list', { group: 'write' }],
    ['the operation in the name', [{ name: 'group:write', operations: null }]],
    ['no operations', [{ name: 'group', operations: null }]],
    ['no objects', ['group:write']],
  ])('(%s) refuse no change', (_what, oddScopes) =>
    onOpenCloud(
      async (system) => {
        expect((await system.rank(bob)).status).toBe(200);
        expect((await readyz(system)).status).toBe(200);
      },
      { prepare: ({ credential }) => Object.assign(credential, { oddScopes }) },
    )(),
  );

  test('that lack the one to write are told in a warning, and refuse once a write was denied for it', () =>
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
  'a key that Roblox does not describe (%s) is used all the same, and is told as that',
  (kind) =>
    onOpenCloud(
      async (system) => {
        expect((await system.rank(bob)).status).toBe(200);
        expect((await readyz(system)).status).toBe(200);
        const told = system.logLines.filter((line) => /"level":"(warn|error)"/.test(line));
        expect(told).toEqual([expect.stringContaining('Roblox does not tell how the Roblox key is')]);
      },
      {
        prepare: ({ faults }) => faults.add({ operation: 'introspect', kind, body: '<html>no</html>', times: 10_000 }),
      },
    )(),
);

test('a group that the key may not read hinders no change as long as roles and members can be read', () =>
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

test('in a group that Roblox has migrated, whoever holds the rank of the owner is not called the owner, and is left alone', () =>
  onOpenCloud(
    async (system) => {
      system.fake.expectNoWrites(bob);
      const refused = await system.rank(bob);
      expect([refused.status, codeOf(refused)]).toEqual([403, 'above_acting_account']);
      expect(messageOf(refused)).toContain("holds Co-owner (rank 255), and whoever holds the owner's rank");
      expect(messageOf(await system.rank(eve, { newRankId: 77_000_255 }))).toContain('has the rank of the owner role');
      expect((await system.rank(eve, { newRankId: 50 })).status).toBe(200);
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
  const holdIt = ({ group }: OpenCloudApp['fake']) => {
    group.roles.push(general);
    group.setMember(bob, [trainee, general.id]);
  };

  test('hinders nothing where a ladder says which roles are changed, and stays', () =>
    onOpenCloud(
      async (system) => {
        expect((await system.rank(bob)).status).toBe(200);
        expect(system.fake.group.held(bob)).toEqual([general.id, officer].sort((a, b) => a - b));
      },
      { prepare: holdIt, ladder: [10, 20, 50] },
    )());

  test('is looked up alone and named where there is none', () =>
    onOpenCloud(
      async (system) => {
        system.fake.expectNoWrites(bob);
        const answer = await system.rank(bob);
        expect([answer.status, codeOf(answer)]).toEqual([503, 'platform_unavailable']);
        expect(messageOf(answer)).toMatch(
          /holds the role General \(rank 90\) \(id 77000000\) .*made a moment ago, or is private/,
        );
        expect(system.fake.journal.requests('role')).toHaveLength(1);
        expect(system.fake.violations()).toEqual([]);
      },
      { prepare: holdIt },
    )());
});

test('a list whose last page leads to the first again is read once', () =>
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

test('a group that Roblox has locked is not told as a key that is not accepted, and the key goes on once it is unlocked', () =>
  onOpenCloud(async (system) => {
    const { fake, clock, app } = system;
    clock.skip(longMs);
    fake.group.locked = true;
    const refused = await system.rank(bob);
    expect([refused.status, codeOf(refused)]).toEqual([502, 'platform_credential']);
    expect(messageOf(refused)).toMatch(
      /The Roblox key may not read this \(403 PERMISSION_DENIED: The group is locked\.\)/,
    );
    expect(app.deadCredential()).toBeUndefined();
    fake.group.locked = false;
    expect((await system.rank(bob)).status).toBe(200);
  })());

describe('/readyz, which anybody may ask', () => {
  test.each(['memberships', 'roles', 'introspect'] as const)(
    'does not make rankd ask Roblox again and again where %s fail, and does not turn ready meanwhile',
    (operation) =>
      onOpenCloud(async (system) => {
        const { fake, clock } = system;
        clock.skip(longMs);
        fake.faults.add({ operation, kind: 'status 501', times: 10_000 });
        const first = (await readyz(system)).status;
        const asked = fake.journal.entries.length;
        for (let n = 0; n < 100; n += 1) expect((await readyz(system)).status).toBe(first);
        expect(fake.journal.entries.length - asked).toBeLessThan(6);
        expect(first).toBe(operation === 'introspect' ? 200 : 503); // changes are made without introspection, too
        fake.faults.clear();
        clock.skip(5_000);
        expect((await readyz(system)).status).toBe(200);
      })(),
  );
});
