import { expect, test, vi } from 'vitest';
import { deadlineIn } from '../../src/base/clock.ts';
import { RankdError } from '../../src/base/errors.ts';
import type { RankChange } from '../../src/core/model.ts';
import type { Clock, Store } from '../../src/ports/index.ts';
import { changeRank } from '../../src/usecases/change/change-rank.ts';
import { MemberTurns } from '../../src/usecases/change/member-turns.ts';
import { reconcileChange, recoverChanges } from '../../src/usecases/change/reconcile-change.ts';
import { begin, finish, newChange, startCompensating, unknown } from '../contracts/store/samples.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';
import { secondEngine } from '../support/store-of-app.ts';

const { trainee: bob, officer: pat } = sampleUsers;
const { base, trainee, officer } = sampleRoles;

function asDisposable(store: Store): Store & AsyncDisposable {
  return { ...store, [Symbol.asyncDispose]: () => store.close() };
}

const held = (role: number) => [base, role].sort((a, b) => a - b);

/** Stores a change that was sent but never confirmed, by default to Officer. */
async function unconfirmed(
  { app, clock }: OpenCloudApp,
  rankeeId: number,
  { from, to }: { from: number; to: number } = { from: trainee, to: officer },
): Promise<RankChange> {
  const [rolesBefore, rolesAfter] = [held(from), held(to)];
  const [group, requestedAt] = [app.group.title, clock.now()];
  const demotion = to === trainee;
  const change = newChange({ group, rankeeId, rolesBefore, rolesAfter, roleId: to, requestedAt, demotion });
  const { latestId } = await app.store.latestChange(rankeeId);
  await begin(app.store, change, { after: latestId });
  await finish(app, change.id, unknown);
  return change;
}

/** Stores a change that was sent in a group other than the configured one, but never confirmed. */
async function begunElsewhere({ app, clock }: OpenCloudApp, rankeeId: number): Promise<RankChange> {
  // the configured group has the same role ids
  const roles = { rolesBefore: held(trainee), rolesAfter: held(officer), roleId: officer };
  const change = newChange({ group: 'group 701 on roblox.example', rankeeId, ...roles, requestedAt: clock.now() });
  await begin(app.store, change, { after: undefined });
  await finish(app, change.id, unknown);
  return change;
}

/** Stores an unconfirmed change to Bob that gave the new role but did not take the old one. */
async function storeHalfDoneChange(system: OpenCloudApp): Promise<RankChange> {
  system.fake.group.change(bob, [trainee, officer], system.fake.now());
  return await unconfirmed(system, bob);
}

test(
  'a change that one process is reconciling is skipped by another',
  onOpenCloud(
    async (system) => {
      const { app, fake } = system;
      const change = await storeHalfDoneChange(system);
      const store = await secondEngine(system.dataDir, app.clock).openStore();
      const shell = { ...app, store, turns: new MemberTurns(), ownedChangeIds: new Set<string>() };
      fake.faults.add({ operation: 'unassign', kind: 'slow', delayMs: 100 });
      const recovery = system.recover();
      await expect.poll(() => fake.journal.requests('unassign').length).toBe(1);

      expect(await reconcileChange(shell, change, { ...system.call(), lane: 'operator' })).toBe(false);
      await recovery;
      expect(await reconcileChange(shell, change, { ...system.call(), lane: 'operator' })).toBe(false);
      await store.close();
      expect(fake.journal.writes(bob)).toHaveLength(1);
      expect(await app.store.findChange(change.id)).toMatchObject({ state: 'applied' });
    },
    { readLagMs: 50 },
  ),
);

test.each(['forward', 'compensate'] as const)(
  'a half-done change (%s) without room in the budget stays open, is logged once, and is completed later',
  (phase) =>
    onOpenCloud(
      async (system) => {
        const { app, fake, clock } = system;
        const change = await storeHalfDoneChange(system);
        if (phase === 'compensate')
          await startCompensating(app, change.id, { code: 'above_acting_account', message: 'No.' });
        fake.faults.add({ operation: 'unassign', kind: 'status 429', headers: { 'retry-after': '30' } });
        expect(await system.recover()).toEqual([change.id]);
        expect(await system.recover()).toEqual([]);
        expect(await app.store.findChange(change.id)).toMatchObject({ state: 'unknown', phase });

        clock.skip(31_000);
        await system.recover();
        const state = phase === 'forward' ? 'applied' : 'refused';
        expect(await app.store.findChange(change.id)).toMatchObject({ state, phase });
        expect(fake.group.held(bob)).toEqual([phase === 'forward' ? officer : trainee]);
      },
      { readLagMs: 50 },
    )(),
);

test(
  'a half-done change whose second step is permanently refused is reverted, and its outcome is the refusal',
  onOpenCloud(
    async (system) => {
      const { app, fake } = system;
      const change = await storeHalfDoneChange(system);
      fake.faults.add({ operation: 'unassign', roleId: trainee, kind: 'status 403', times: 2 });
      await system.recover();
      expect(fake.group.held(bob)).toEqual([trainee]);
      expect(await app.store.findChange(change.id)).toMatchObject({
        state: 'refused',
        code: 'above_acting_account',
        phase: 'compensate',
        rolesAfter: change.rolesBefore,
      });
    },
    { readLagMs: 50 },
  ),
);

test.each([
  ['promotion', { from: trainee, to: officer }, { state: 'failed', code: 'platform_unavailable', phase: 'compensate' }],
  ['demotion', { from: officer, to: trainee }, { state: 'applied', phase: 'forward' }],
] as const)(
  'a member whom a %s left with fewer roles than before and after gets the lower of the two ranks',
  (_, roles, outcome) =>
    onOpenCloud(
      async (system) => {
        const { app, fake } = system;
        fake.group.change(bob, [], fake.now());
        const change = await unconfirmed(system, bob, roles);
        await system.recover();
        expect(fake.group.held(bob)).toEqual([trainee]);
        expect(await app.store.findChange(change.id)).toMatchObject({ ...outcome, rolesAfter: held(trainee) });
      },
      { readLagMs: 50 },
    )(),
);

test(
  'a member who has lost roles and holds one that the change does not name is not changed',
  onOpenCloud(
    async (system) => {
      const { app, fake } = system;
      fake.group.change(bob, [sampleRoles.captain], fake.now());
      const change = await unconfirmed(system, bob);
      await system.recover();
      expect(fake.journal.writes(bob)).toEqual([]);
      expect(await app.store.findChange(change.id)).toMatchObject({ state: 'failed', code: 'platform_rejected' });
    },
    { readLagMs: 50 },
  ),
);

test(
  'a half-done change that cannot be reverted either reports that, with the current roles',
  onOpenCloud(
    async (system) => {
      const { app, fake } = system;
      const change = await storeHalfDoneChange(system);
      fake.faults.add({ operation: 'unassign', kind: 'status 403', times: 4 });
      await system.recover();
      expect(fake.group.held(bob)).toEqual([officer, trainee]);
      expect(await app.store.findChange(change.id)).toMatchObject({
        state: 'refused',
        message: expect.stringMatching(/^Could not be reverted: /),
        rolesAfter: [base, trainee, officer].sort((a, b) => a - b),
      });
    },
    { readLagMs: 50 },
  ),
);

test(
  'a change that was carried out does not count as lost while reads do not show it yet',
  onOpenCloud(
    async (system) => {
      const { app, fake } = system;
      fake.group.change(bob, [officer], fake.now());
      const change = await unconfirmed(system, bob);
      await system.recover();
      expect(await app.store.findChange(change.id)).toMatchObject({ state: 'applied' });
      expect(fake.journal.writes(bob)).toEqual([]);
    },
    { fake: { lagMs: 400 }, readLagMs: 500 },
  ),
);

test(
  'recovery does not wait for a change that this daemon is working on',
  onOpenCloud(async (system) => {
    const { app, fake } = system;
    fake.faults.add({ operation: 'assign', kind: 'slow', delayMs: 300 });
    const answer = system.rank(bob);
    await expect.poll(() => fake.journal.writes(bob), { interval: 1 }).toHaveLength(1);
    await system.recover();
    expect(await app.store.openChanges()).toMatchObject([{ change: { rankeeId: bob, state: 'pending' } }]);
    expect((await answer).status).toBe(200);
  }),
);

async function begunByCommand({ app, clock, dataDir }: OpenCloudApp) {
  const { keyId: _, ...change } = newChange({
    ...{ rankeeId: bob, rolesBefore: held(trainee), rolesAfter: held(officer), roleId: officer },
    ...{ group: app.group.title, requestedAt: clock.now(), by: 'cli:ann@host' },
  });
  const command = { store: await secondEngine(dataDir, clock).openStore(), clock };
  await begin(command.store, change);
  return { id: change.id, command, state: async () => (await app.store.findChange(change.id))?.state };
}

test(
  'a change that a command is making is skipped by the daemon while the command runs, and reconciled afterwards',
  onOpenCloud(
    async (system) => {
      const { command, state } = await begunByCommand(system);
      for (const passedMs of [0, 1_500, 3_600_000]) {
        system.clock.skip(passedMs);
        await system.recover();
        expect(await state()).toBe('pending');
      }
      await command.store.close();
      await expect.poll(state).toBe('failed'); // the daemon regularly reconciles abandoned changes
    },
    { deadlineMs: 1_500, readLagMs: 50 },
  ),
);

const hourMs = 3_600_000;
test.each([
  ['whose clock is an hour ahead', { aheadMs: hourMs, deadlineMs: 1_500 }],
  ['whose clock is an hour behind', { aheadMs: -hourMs, deadlineMs: 1_500 }],
  ['whose deadline is twice as long', { aheadMs: 0, deadlineMs: 3_000 }],
])('a daemon and a command %s never write for each other’s changes', (_what, { aheadMs, deadlineMs }) =>
  onOpenCloud(
    async (system) => {
      const { app, fake, dataDir, clock } = system;
      const shellClock: Clock = {
        now: () => clock.now() + aheadMs,
        monotonic: () => clock.monotonic(),
        sleep: (ms, signal) => clock.sleep(ms, signal),
      };
      await using store = asDisposable(await secondEngine(dataDir, shellClock).openStore());
      const shell = {
        ...app,
        store,
        clock: shellClock,
        deadlineMs,
        turns: new MemberTurns(),
        ownedChangeIds: new Set<string>(),
      };
      fake.faults.add({ operation: 'assign', kind: 'slow', delayMs: 250, times: 2 });
      const request = { rankeeId: bob, rankeeName: '', rankerId: 0, rankerName: 'operator', newRankId: 20 };
      using deadline = deadlineIn(shellClock, deadlineMs);
      const byShell = changeRank(shell, { caller: { by: 'cli:ann@host', dryRun: false }, request }, deadline);
      await expect.poll(() => fake.journal.requests('assign').length, { interval: 1 }).toBe(1);
      await system.recover();
      expect((await byShell).change).toMatchObject({ state: 'applied' });

      const byDaemon = system.rank(bob, { newRankId: 10 });
      await expect.poll(() => fake.journal.requests('assign').length, { interval: 1 }).toBe(2);
      const stop = new AbortController().signal;
      await recoverChanges(shell, { report: () => undefined, stop, tries: { underWay: new Set(), last: new Map() } });
      expect((await byDaemon).status).toBe(200);
      expect(fake.journal.writes(bob)).toHaveLength(4);
      expect(await app.store.openChanges()).toEqual([]);
    },
    { readLagMs: 50 },
  )(),
);

test.each([
  ['with 200 if the history has it', true, 200],
  ['with 504 if the history does not have it', false, 504],
])('an outcome that the store does not confirm is answered %s', (_, isKept, status) =>
  onOpenCloud(async ({ app: { store }, fake, rank }) => {
    const update = store.updateChange.bind(store);
    vi.spyOn(store, 'updateChange').mockImplementationOnce(async (...args) => {
      if (isKept) await update(...args);
      throw new RankdError('store_unavailable', 'The connection broke.');
    });
    expect((await rank(bob)).status).toBe(status);
    expect(fake.journal.writes(bob)).toHaveLength(2);
  })(),
);

test(
  'a daemon leaves a change that it could not complete to other daemons for two of their rounds',
  onOpenCloud(
    async (system) => {
      const { app, fake, clock } = system;
      const [mine, failed] = [
        await storeHalfDoneChange(system),
        await unconfirmed(system, pat, { from: officer, to: trainee }),
      ];
      app.recentWrites.note(mine.rankeeId);
      const tries = { underWay: new Set<string>(), last: new Map<string, number>() };
      const stop = new AbortController().signal;
      const node = { ...app, store: { ...app.store, nodes: { isAlone: false } as Store['nodes'] } };
      const round = async () => {
        await recoverChanges(node, { report: () => undefined, stop, tries });
        return (await app.store.openChanges()).map(({ change }) => change.id);
      };
      fake.faults.add({ operation: 'memberships', kind: 'status 403', userId: pat, times: 1 });
      expect(await round()).toEqual([mine.id, failed.id]);
      const reads = fake.journal.requests('memberships').length;
      await round();
      expect(fake.journal.requests('memberships')).toHaveLength(reads);
      const laterRound = async () => {
        await clock.skip(5_000);
        return round();
      };
      await expect.poll(laterRound).toEqual([]); // a read may time out on a busy machine
    },
    { readLagMs: 50 },
  ),
);

test(
  'a daemon that is alone on the database retries in its next round',
  onOpenCloud(
    async (system) => {
      const { app, fake } = system;
      const failed = await unconfirmed(system, pat, { from: officer, to: trainee });
      const tries = { underWay: new Set<string>(), last: new Map<string, number>() };
      const node = { ...app, store: { ...app.store, nodes: { isAlone: true } as Store['nodes'] } };
      const round = async () => {
        await recoverChanges(node, { report: () => undefined, stop: new AbortController().signal, tries });
        return (await app.store.openChanges()).map(({ change }) => change.id);
      };
      fake.faults.add({ operation: 'memberships', kind: 'status 403', userId: pat, times: 1 });
      expect(await round()).toEqual([failed.id]);
      expect(await round()).toEqual([]);
    },
    { readLagMs: 50 },
  ),
);

test(
  'a change that a command could not confirm is reconciled by the daemon at once',
  onOpenCloud(
    async (system) => {
      const { id, command, state } = await begunByCommand(system);
      await finish(command, id, unknown);
      await system.recover();
      expect(await state()).toBe('failed');
      await command.store.close();
    },
    { readLagMs: 50 },
  ),
);

test(
  'a change back that was never carried out does not count as done because of stale reads',
  onOpenCloud(
    async (system) => {
      expect((await system.rank(bob)).status).toBe(200);
      const change = await unconfirmed(system, bob, { from: officer, to: trainee });
      await system.recover();
      expect(await system.app.store.findChange(change.id)).toMatchObject({ state: 'failed' });
    },
    { fake: { lagMs: 400 }, readLagMs: 500 },
  ),
);

const limit = 40;

test(
  'however many changes are open, reconciling them uses at most half of the budget and completes',
  onOpenCloud(
    async (system) => {
      const { app, fake, clock } = system;
      expect((await system.rank(bob)).status).toBe(200); // the responses report the budget
      for (let number = 0; number < 60; number += 1) {
        fake.group.setMember(20_000 + number, [trainee]);
        await unconfirmed(system, 20_000 + number);
      }
      for (let open = 60; open > 0; open = (await app.store.openChanges()).length) {
        const reads = () => fake.journal.requests('memberships').length;
        const before = reads();
        clock.skip(61_000); // the daemon begins its next round
        await expect.poll(async () => (await app.store.openChanges()).length).toBeLessThan(open);
        for (let seen = -1; seen !== reads(); await clock.sleep(100)) seen = reads();
        expect(reads() - before).toBeLessThanOrEqual(limit / 2);
        expect((await app.store.openChanges()).length).toBeLessThan(open);
        expect((await system.rank(bob, { newRankId: open % 20 === 0 ? 10 : 20 })).status).toBe(200);
      }
      expect(new Set(fake.journal.entries.map(({ status }) => status))).toEqual(new Set([200]));
    },
    { fake: { limits: { memberships: limit, assign: 300, unassign: 300 } }, readLagMs: 50 },
  ),
);

test(
  'a round does not wait for a change that the previous round is reconciling',
  onOpenCloud(
    async (system) => {
      await storeHalfDoneChange(system);
      system.fake.faults.add({ operation: 'unassign', kind: 'slow', delayMs: 200 });
      const ended: string[] = [];
      const first = system.recover().then(() => ended.push('first'));
      await expect.poll(() => system.fake.journal.requests('unassign').length).toBe(1);
      const second = system.recover().then(() => ended.push('second'));
      await Promise.all([first, second]);
      expect(ended).toEqual(['second', 'first']);
    },
    { readLagMs: 50 },
  ),
);

test(
  'changes that cannot be reconciled here do not delay others, however many there are',
  onOpenCloud(
    async (system) => {
      expect((await system.rank(bob)).status).toBe(200); // the responses report the budget
      for (let number = 0; number < 8; number += 1) await begunElsewhere(system, 20_000 + number);
      const change = await unconfirmed(system, bob);
      for (let round = 0; round < 2; round += 1) await system.recover();
      expect(await system.app.store.findChange(change.id)).toMatchObject({ state: 'applied' });
    },
    { fake: { limits: { memberships: 10, assign: 300, unassign: 300 } }, readLagMs: 50 },
  ),
);

test(
  'a change that began in another group is not reconciled by reading this one',
  onOpenCloud(
    async (system) => {
      const { app } = system;
      const change = await begunElsewhere(system, 404);
      await system.recover();
      expect(await app.store.findChange(change.id)).toMatchObject({ state: 'unknown' });
      expect(await app.store.openChanges()).toHaveLength(1);

      const request = { rankeeId: 404, rankeeName: '', rankerId: 0, rankerName: 'operator', newRankId: 20 };
      const order = { caller: { by: 'cli:ann@host', dryRun: false }, request };
      using deadline = deadlineIn(app.clock, app.deadlineMs);
      const { error } = await changeRank(app, order, deadline);
      expect(error).toMatchObject({ code: 'platform_unavailable', hint: expect.stringContaining('earlier group') });
    },
    { readLagMs: 50 },
  ),
);
