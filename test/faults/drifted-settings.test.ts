import { describe, expect, test } from 'vitest';
import type { Scope } from '../../src/core/model.ts';
import type { RoleName } from '../../src/core/role-name.ts';
import type { RoleSetting } from '../../src/core/role-settings.ts';
import { codeOf, expectError, messageOf } from '../support/answers.ts';
import type { FakeRole } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles } from '../support/open-cloud-app.ts';
import { send } from '../support/open-test-app.ts';

/**
 * Settings that name roles, in a group whose roles are renumbered, renamed, deleted, swapped and added while the daemon
 * runs.
 */

const { trainee, officer } = sampleRoles;
const scopes: Scope[] = ['verify', 'rank', 'suspend'];
const [ann, dan] = [30_001, 30_004];

/** A role for each setting; all changes are made to these. */
const roles = {
  locked: { id: 81_000, name: 'Locked', rank: 60 },
  guarded: { id: 82_000, name: 'Guarded', rank: 70 },
  powerful: { id: 83_000, name: 'Powerful', rank: 80 },
  rung: { id: 84_000, name: 'Rung', rank: 90 },
  parked: { id: 85_000, name: 'Parked', rank: 100 },
} satisfies Record<string, FakeRole>;
const named = Object.values(roles);
/** Roles without a setting, one for each of those. */
const partners = named.map(({ id, name, rank }) => ({ id: id + 1, name: `Other ${name}`, rank: rank + 1 }));

const forms = {
  number: ({ rank }: FakeRole): RoleName => rank,
  name: ({ name }: FakeRole): RoleName => name,
  id: ({ id }: FakeRole): RoleName => id,
};
type Form = keyof typeof forms;

/** The changes to each role and its partner, and the forms of the setting that no longer identify the role. */
const turns: Record<string, { does: (role: FakeRole, partner: FakeRole) => FakeRole[]; misfits: Form[] }> = {
  renumbered: { does: (role, partner) => [{ ...role, rank: role.rank + 5 }, partner], misfits: ['number'] },
  renamed: { does: (role, partner) => [{ ...role, name: `New ${role.name}` }, partner], misfits: ['name'] },
  'exchanged with another': {
    does: (role, partner) => [
      { ...role, name: partner.name, rank: partner.rank },
      { ...partner, name: role.name, rank: role.rank },
    ],
    misfits: ['number', 'name'],
  },
  'joined by a second role of its number and name': {
    does: (role, partner) => [role, { ...partner, name: role.name.toUpperCase(), rank: role.rank }],
    misfits: ['number', 'name'],
  },
  deleted: { does: (_, partner) => [partner], misfits: ['number', 'name', 'id'] },
};

describe.each(Object.keys(forms) as Form[])('settings that name roles by %s mean the same roles', (form) => {
  const { locked, guarded, powerful, rung, parked } = roles;
  const by = (role: FakeRole) => forms[form](role);
  const policy = {
    ...{ lockedRoles: [by(locked)], protectedRoles: [by(guarded)], privilegedRoles: [by(powerful)] },
    suspension: { role: by(parked), maxMs: 86_400_000 },
  };
  const ladder = [10, 20, by(locked), by(powerful), by(rung)];
  const prepare: (fake: OpenCloudApp['fake']) => void = ({ group }) => group.roles.push(...named, ...partners);

  test(
    'whatever happens to them on Roblox, with one alarm for each misfit, and one event once it fits again',
    onOpenCloud(
      async (system) => {
        const { fake, clock, url, app, secret } = system;
        const before = fake.group.roles;
        const key = await suspender(system);
        for (const [index, [turn, { does, misfits }]] of Object.entries(turns).entries()) {
          // Different members each time: roles that nobody gave would count as a lost write.
          const [ann, bob, cid, dan] = [1, 2, 3, 4].map((one) => 30_100 + 10 * index + one) as [
            number,
            number,
            number,
            number,
          ];
          const isGone = turn === 'deleted';
          fake.group.setMember(ann, [trainee]);
          fake.group.setMember(bob, isGone ? [trainee] : [trainee, guarded.id]);
          fake.group.setMember(cid, isGone ? [officer] : [officer, rung.id]);
          fake.group.setMember(dan, [trainee]);
          const change = (list: FakeRole[]) => {
            fake.group.roles = list;
            clock.skip(31_000); // longer than the roles are cached
          };
          const told = async (action: string) => {
            const events = await app.store.listAudit({ action, limit: 100 });
            return events.map(({ subject }) => subject as RoleSetting).sort();
          };
          const [drifts, fits] = [await told('configuration.drift'), await told('configuration.fit')];
          change([...before.filter(({ id }) => id < 81_000 || id > 85_001), ...named.flatMap(changed)]);

          const give = async (roleId: number) => {
            const answer = await system.rank(ann, { newRankId: roleId });
            return [answer.status, codeOf(answer), messageOf(answer)];
          };
          const unknown = [400, 'unknown_rank', expect.anything()];
          const refused = (why: RegExp) => [403, 'rank_not_allowed', expect.stringMatching(why)];
          const cell = [form, turn];
          expect([cell, await give(locked.id)]).toEqual([cell, isGone ? unknown : refused(/policy\.locked_roles/)]);
          expect([cell, await give(powerful.id)]).toEqual([cell, isGone ? unknown : refused(/is a privileged role/)]);
          expect([cell, codeOf(await system.rank(bob, { newRankId: 20 }))]).toEqual([
            cell,
            isGone ? undefined : 'member_protected',
          ]);
          expect([cell, (await system.rank(cid, { newRankId: 10 })).status]).toEqual([cell, 200]);
          expect([cell, fake.group.held(cid)]).toEqual([cell, [trainee]]);

          const suspended = await ask(url, 'suspend', key, { robloxUserId: dan, duration: '1h' });
          if (isGone) {
            const error = 'Configuration does not fit the group';
            expectError(suspended, { status: 409, code: 'configuration_misfit', error });
            expect(messageOf(suspended)).toContain('policy.suspension.role names');
          } else {
            expect([cell, suspended.status, fake.group.held(dan)]).toEqual([cell, 200, [parked.id]]);
            expect((await ask(url, 'unsuspend', key, { robloxUserId: dan })).status).toBe(200);
            expect([cell, fake.group.held(dan)]).toEqual([cell, [trainee]]);
          }

          const settings: RoleSetting[] = misfits.includes(form) ? entries : [];
          const ready = await send(`${url}/readyz`, {});
          expect([ready.status, (ready.json as { misfits?: string[] }).misfits ?? []]).toEqual([
            200,
            settings.map(() => expect.stringMatching(/^(group|policy)\.[\w.]+ names /)),
          ]);
          await expect.poll(() => told('configuration.drift')).toEqual([...drifts, ...settings].sort());
          change(before);
          expect((await system.rank(ann, { key: secret, newRankId: 20 })).status).toBe(200);
          await expect.poll(() => told('configuration.fit')).toEqual([...fits, ...settings].sort());
          expect(await told('configuration.drift')).toEqual([...drifts, ...settings].sort());

          function changed(role: FakeRole, at: number): FakeRole[] {
            const partner = partners[at];
            return partner === undefined ? [] : does(role, partner);
          }
        }
      },
      { ladder, policy, prepare, scopes },
    ),
  );
});

/** The settings above, once for each of their entries for these roles. */
const entries: RoleSetting[] = [
  ...(['group.ladder', 'group.ladder', 'group.ladder'] as const),
  ...(['policy.locked_roles', 'policy.privileged_roles', 'policy.protected_roles', 'policy.suspension.role'] as const),
];

async function suspender({ app, newKey }: OpenCloudApp): Promise<string> {
  const secret = await newKey('guard');
  const [key] = await app.store.listKeys({ name: 'guard' });
  expect(key?.scopes).toContain('suspend');
  return secret;
}

function ask(url: string, operation: string, key: string, body: unknown) {
  return send(`${url}/v2/${operation}?placeid=1`, { method: 'POST', key, body });
}

test(
  'a suspension that began before its role and a rung were deleted still ends with exactly the earlier roles',
  onOpenCloud(
    async (system) => {
      const { fake, clock, url } = system;
      const key = await suspender(system);
      fake.group.setMember(dan, [officer]);
      expect((await ask(url, 'suspend', key, { robloxUserId: dan, duration: '1h' })).status).toBe(200);
      expect(fake.group.held(dan)).toEqual([roles.parked.id]);
      fake.group.roles = fake.group.roles.filter(({ name }) => name !== 'Parked' && name !== 'Captain');
      fake.group.setMember(dan, []);
      clock.skip(31_000);
      expect((await ask(url, 'unsuspend', key, { robloxUserId: dan })).status).toBe(200);
      expect(fake.group.held(dan)).toEqual([officer]);
    },
    {
      prepare: ({ group }) => group.roles.push(roles.parked),
      scopes,
      ladder: [10, 20, 50],
      policy: { suspension: { role: 'Parked', maxMs: 86_400_000 } },
    },
  ),
);

test(
  'a ceiling that names a role follows its rank, and refuses every change once the role is gone, and /readyz fails',
  onOpenCloud(
    async ({ fake, clock, rank, url }) => {
      fake.group.setMember(ann, [trainee]);
      expect(codeOf(await rank(ann, { newRankId: 50 }))).toBe('rank_not_allowed');
      const role = fake.group.role(officer);
      if (role !== undefined) role.rank = 60;
      clock.skip(31_000);
      expect((await rank(ann, { newRankId: 50 })).status).toBe(200);
      fake.group.roles = fake.group.roles.filter(({ id }) => id !== officer);
      clock.skip(31_000);
      for (const answer of [await rank(ann, { newRankId: 10 }), await send(`${url}/readyz`, {})]) {
        expect([answer.status, codeOf(answer)]).toEqual([409, 'configuration_misfit']);
        expect(messageOf(answer)).toMatch(/policy\.max_rank names "Officer", .* no longer lists that role/);
      }
    },
    { policy: { maxRank: 'Officer' } },
  ),
);

test(
  'a key with the name of a role as its bound follows the rank of that role, and can do nothing once it is gone',
  onOpenCloud(async ({ fake, clock, rank, app, secret }) => {
    fake.group.setMember(ann, [trainee]);
    const [key] = await app.store.listKeys({ name: 'main' });
    const rules = { maxRank: 20, maxRankRole: officer };
    await app.store.updateKey(key?.id ?? '', () => ({ change: { rules }, events: [] }));
    expect(codeOf(await rank(ann, { newRankId: 50 }))).toBe('rank_not_allowed');
    const role = fake.group.role(officer);
    if (role !== undefined) role.rank = 60;
    clock.skip(31_000);
    expect((await rank(ann, { newRankId: 50 })).status).toBe(200);
    fake.group.roles = fake.group.roles.filter(({ id }) => id !== officer);
    clock.skip(31_000);
    expect(codeOf(await rank(ann, { newRankId: 10 }))).toBe('configuration_misfit');
    expect((await rank(ann, { key: secret, newRankId: 10 })).status).toBe(409);
  }),
);
