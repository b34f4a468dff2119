import { describe, expect, test } from 'vitest';
import { deadlineIn } from '../../src/base/clock.ts';
import type { Scope } from '../../src/core/model.ts';
import type { RoleName } from '../../src/core/role-scheme.ts';
import type { RoleSetting } from '../../src/core/role-settings.ts';
import { changeRank } from '../../src/usecases/change/change-rank.ts';
import type { RequestedHold } from '../../src/usecases/change/ranking.ts';
import { groupFindings } from '../../src/usecases/doctor/platform.ts';
import { liftHold } from '../../src/usecases/holds/holds.ts';
import { codeOf, messageOf } from '../support/answers.ts';
import type { FakeRole } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles } from '../support/open-cloud-app.ts';
import { send } from '../support/open-test-app.ts';

const { trainee, officer } = sampleRoles;
const scopes: Scope[] = ['verify', 'rank', 'suspend'];
const [ann, dan] = [30_001, 30_004];

/** One role for each setting. Each of them has a partner that no setting names, and the test changes no other roles. */
const roles = {
  locked: { id: 81_000, name: 'Locked', rank: 60 },
  guarded: { id: 82_000, name: 'Guarded', rank: 70 },
  powerful: { id: 83_000, name: 'Powerful', rank: 80 },
  rung: { id: 84_000, name: 'Rung', rank: 90 },
  suspended: { id: 85_000, name: 'Suspended', rank: 100 },
} satisfies Record<string, FakeRole>;
const named = Object.values(roles);
const partners = named.map(({ id, name, rank }) => ({ id: id + 1, name: `Other ${name}`, rank: rank + 1 }));

const forms = {
  number: ({ rank }: FakeRole): RoleName => rank,
  name: ({ name }: FakeRole): RoleName => name,
  id: ({ id }: FakeRole): RoleName => id,
};
type Form = keyof typeof forms;

/**
 * The changes that are made to each role and its partner. `misfits` lists the forms of a setting that then no longer
 * identify the role.
 */
const turns: Record<
  string,
  {
    does: (role: FakeRole, partner: FakeRole) => FakeRole[];
    misfits?: Form[];
    isGone?: boolean;
    isPrivate?: boolean;
  }
> = {
  renumbered: { does: (role, partner) => [{ ...role, rank: role.rank + 5 }, partner], misfits: ['number'] },
  renamed: { does: (role, partner) => [{ ...role, name: `New ${role.name}` }, partner], misfits: ['name'] },
  'swapped with another role': {
    does: (role, partner) => [
      { ...role, name: partner.name, rank: partner.rank },
      { ...partner, name: role.name, rank: role.rank },
    ],
    misfits: ['number', 'name'],
  },
  'joined by a second role with its number and name': {
    does: (role, partner) => [role, { ...partner, name: role.name.toUpperCase(), rank: role.rank }],
    misfits: ['number', 'name'],
  },
  deleted: { does: (_, partner) => [partner], misfits: ['number', 'name', 'id'], isGone: true },
  'made private': { does: (role, partner) => [{ ...role, isPrivate: true }, partner], isPrivate: true },
};

describe.concurrent.each(Object.keys(forms) as Form[])(
  'settings that name roles by %s still mean the same roles',
  (form) => {
    const { locked, guarded, powerful, rung, suspended } = roles;
    const by = (role: FakeRole) => forms[form](role);
    const policy = {
      ...{ lockedRoles: [by(locked)], protectedRoles: [by(guarded)], privilegedRoles: [by(powerful)] },
      suspension: { role: by(suspended), maxMs: 86_400_000 },
      breaker: { enabled: false, demotions: 10, highRank: undefined, highChanges: 5, windowMs: 600_000 },
    };
    const ladder = [10, 20, by(locked), by(powerful), by(rung)];
    const prepare: (fake: OpenCloudApp['fake']) => void = ({ group }) => group.roles.push(...named, ...partners);

    test('whatever happens to them on Roblox, with one alarm for each misfit and one event once it is resolved', ({
      expect,
    }) =>
      onOpenCloud(
        async (system) => {
          const { fake, clock } = system;
          const before = fake.group.roles;
          const key = await suspender(system);
          let members = 30_100;
          for (const [turn, { does, misfits = [], isGone = false, isPrivate = false }] of Object.entries(turns)) {
            const join = (held: number[]) => {
              members += 1; // a new member, because roles that the test itself changes would look like a lost write
              fake.group.setMember(members, isGone ? held.filter((id) => !named.some((role) => role.id === id)) : held);
              return members;
            };
            const change = (list: FakeRole[]) => {
              fake.group.roles = list;
              clock.skip(31_000); // longer than the roles stay in the cache
            };
            const alarms = async (action: string) => {
              const events = await system.app.store.listAudit({ action, limit: 100 });
              return events.map(({ subject }) => subject as RoleSetting).sort();
            };
            const [drifts, fits] = [await alarms('configuration.drift'), await alarms('configuration.fit')];
            const suspendedBefore = join([officer]);
            expect(
              codeOf(await ask(system.url, 'suspend', key, { robloxUserId: suspendedBefore, duration: '1h' })),
            ).toBe(undefined);
            clock.skip(1_000);
            // Let all late reads finish, because they would report a deleted role as a lost write.
            await expect.poll(() => system.app.trust.reads.length).toBe(0);
            const changed = named.flatMap((role, at) => (partners[at] === undefined ? [] : does(role, partners[at])));
            change([...before.filter(({ id }) => id < 81_000 || id > 85_001), ...changed]);
            if (isGone) fake.group.setMember(suspendedBefore, []);

            const isUnlisted = isGone || isPrivate;
            for (const [caller, open] of Object.entries(callers)) {
              await using asking = await open(system, key);
              const { give, suspend, unsuspend } = asking;
              const cell = [form, turn, caller];
              const [ann, dan] = [join([trainee]), join([trainee])];
              const [bob, cid] = [join([trainee, guarded.id]), join([officer, rung.id])];
              const given = [await give(ann, locked.id), await give(ann, powerful.id), await give(bob, 20)];
              expect([cell, given]).toEqual([
                cell,
                [
                  isUnlisted ? 'unknown_rank' : 'rank_not_allowed',
                  caller === 'shell' && !isUnlisted ? undefined : isUnlisted ? 'unknown_rank' : 'rank_not_allowed',
                  isGone ? undefined : 'member_protected',
                ],
              ]);
              expect([cell, await give(cid, 10)]).toEqual([cell, undefined]);
              expect([cell, fake.group.held(cid)]).toEqual([cell, isPrivate ? [rung.id, trainee] : [trainee]]);
              expect([cell, await suspend(dan)]).toEqual([cell, isUnlisted ? 'configuration_misfit' : undefined]);
              if (isUnlisted) continue;
              expect([cell, fake.group.held(dan)]).toEqual([cell, [suspended.id]]);
              expect([cell, await unsuspend(dan), fake.group.held(dan)]).toEqual([cell, undefined, [trainee]]);
            }
            expect(codeOf(await ask(system.url, 'unsuspend', key, { robloxUserId: suspendedBefore }))).toBe(undefined);
            expect([turn, fake.group.held(suspendedBefore)]).toEqual([
              turn,
              isPrivate ? [suspended.id, officer] : [officer],
            ]);

            const settings = isPrivate ? entries.filter(needsGivableRole) : misfits.includes(form) ? entries : [];
            const texts = settings.map(() => expect.stringMatching(/^(group|policy)\.[\w.]+ names /));
            const ready = await send(`${system.url}/readyz`, {});
            expect([ready.status, (ready.json as { misfits?: string[] }).misfits ?? []]).toEqual([200, texts]);
            const failed = (await groupFindings(system.app, system.call())).filter(({ grade }) => grade === 'FAIL');
            expect(failed.map(({ text }) => text)).toEqual(texts);
            await expect.poll(() => alarms('configuration.drift')).toEqual([...drifts, ...settings].sort());
            change(before);
            expect((await system.rank(join([trainee]), { newRankId: 20 })).status).toBe(200);
            await expect.poll(() => alarms('configuration.fit')).toEqual([...fits, ...settings].sort());
            expect(await alarms('configuration.drift')).toEqual([...drifts, ...settings].sort());
          }
        },
        { ladder, policy, prepare, scopes },
      )());
  },
);

/** One for each entry that names one of these roles. */
const entries: RoleSetting[] = [
  ...(['group.ladder', 'group.ladder', 'group.ladder'] as const),
  ...(['policy.locked_roles', 'policy.privileged_roles', 'policy.protected_roles', 'policy.suspension.role'] as const),
];

function needsGivableRole(setting: RoleSetting): boolean {
  return setting === 'group.ladder' || setting === 'policy.suspension.role';
}

/** Requests changes. Each method resolves with the error code, or `undefined` after a success. */
interface Caller extends AsyncDisposable {
  give(userId: number, roleId: number): Promise<unknown>;
  suspend(userId: number): Promise<unknown>;
  unsuspend(userId: number): Promise<unknown>;
}

const callers: Record<string, (system: OpenCloudApp, key: string) => Promise<Caller>> = {
  game: async (system, key) => asGame(system, key),
  shell: (system) => asShell(system),
  'game, after a reload': async (system, key) => {
    await system.reload();
    return asGame(system, key);
  },
  'game, after a restart': async (system, key) => {
    await system.restart();
    return asGame(system, key);
  },
};

function asGame(system: OpenCloudApp, key: string): Caller {
  return {
    give: async (userId, newRankId) => codeOf(await system.rank(userId, { newRankId })),
    suspend: async (robloxUserId) => codeOf(await ask(system.url, 'suspend', key, { robloxUserId, duration: '1h' })),
    unsuspend: async (robloxUserId) => codeOf(await ask(system.url, 'unsuspend', key, { robloxUserId })),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** Requests changes as a command does, which opens the store and reads the group itself. */
async function asShell({ openShell, clock }: OpenCloudApp): Promise<Caller> {
  const caller = { by: 'cli:ann@host', dryRun: false };
  const shell = await openShell();
  const change = async (rankeeId: number, newRankId: number, hold?: RequestedHold) => {
    using deadline = deadlineIn(clock, 5_000);
    const request = { rankeeId, rankeeName: '', rankerId: 0, rankerName: '', newRankId };
    const asked = changeRank(shell, { caller, request, ...(hold !== undefined && { hold }) }, deadline);
    return await asked.then(
      ({ change }) => change.code ?? undefined,
      ({ code }) => String(code),
    );
  };
  return {
    give: change,
    suspend: (userId) => change(userId, 0, { kind: 'suspension', endsAt: clock.now() + 3_600_000 }),
    unsuspend: async (rankeeId) => (await liftHold(shell, { rankeeId, caller, force: false })).finished.error?.code,
    [Symbol.asyncDispose]: () => shell[Symbol.asyncDispose](),
  };
}

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
  'a suspension restores exactly the previous roles even if its role and a rung of the ladder have been deleted',
  onOpenCloud(
    async (system) => {
      const { fake, clock, url } = system;
      const key = await suspender(system);
      fake.group.setMember(dan, [officer]);
      expect((await ask(url, 'suspend', key, { robloxUserId: dan, duration: '1h' })).status).toBe(200);
      expect(fake.group.held(dan)).toEqual([roles.suspended.id]);
      fake.group.roles = fake.group.roles.filter(({ name }) => name !== 'Suspended' && name !== 'Captain');
      fake.group.setMember(dan, []);
      clock.skip(31_000);
      expect((await ask(url, 'unsuspend', key, { robloxUserId: dan })).status).toBe(200);
      expect(fake.group.held(dan)).toEqual([officer]);
    },
    {
      prepare: ({ group }) => group.roles.push(roles.suspended),
      scopes,
      ladder: [10, 20, 50],
      policy: { suspension: { role: 'Suspended', maxMs: 86_400_000 } },
    },
  ),
);

test(
  'a ceiling that names a role follows its rank; once the role is gone, every change is refused and /readyz fails',
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
  'a key whose ceiling names a role follows the role’s rank, and can change no rank once the role is gone',
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
