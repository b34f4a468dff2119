import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { deadlineIn } from '../../src/base/clock.ts';
import type { Hold, RankChange } from '../../src/core/model.ts';
import { type ChangeAnswer, changeRank } from '../../src/usecases/change/change-rank.ts';
import { requestLateRead } from '../../src/usecases/change/late-read.ts';
import type { RequestedHold } from '../../src/usecases/change/ranking.ts';
import type { DaemonContext } from '../../src/usecases/daemon-context.ts';
import { changeDocument } from '../../src/usecases/history/change-document.ts';
import { checkHold } from '../../src/usecases/holds/end-hold.ts';
import { extendHold, liftHold } from '../../src/usecases/holds/holds.ts';
import { findUndoTargets, runUndo } from '../../src/usecases/undo/undo-changes.ts';
import { codeOf, messageOf } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import {
  type OpenCloudApp,
  type OpenCloudAppOptions,
  openCloudApp,
  openCloudAppOn,
  sampleRoles,
  sampleUsers,
} from '../support/open-cloud-app.ts';
import { type Answer, send } from '../support/open-test-app.ts';

vi.setConfig({ maxConcurrency: 8 });

const { recruit, officer, captain, admin } = sampleRoles;
const { actor } = sampleUsers;
const before = [officer, captain].toSorted((a, b) => a - b);
const always = Number.POSITIVE_INFINITY;
const minute = 60_000;
/** `pass` skips all of the time except these last milliseconds, in which the daemon's workers run. */
const workMs = 16_000;
const day = 86_400_000;
const ann = 20_001;
const by = 'cli:ann@host';

interface System extends OpenCloudApp<ManualClock> {
  suspend(userId?: number, options?: { forMs?: number }): Promise<ChangeAnswer>;
  temporarily(newRankId: number, forMs: number): Promise<ChangeAnswer>;
  hold(): Promise<Hold>;
  held(userId?: number): number[];
  pass(ms: number): Promise<void>;
  ask(newRankId: number): Promise<Answer>;
}

/** By default, suspended members hold Recruit. Ann holds Officer and Captain. */
function withHolds(body: (system: System) => Promise<void>, { policy, ...options }: OpenCloudAppOptions = {}) {
  return async () => {
    const clock = new ManualClock();
    const suspension = { role: recruit, maxMs: 365 * day };
    const opening = openCloudAppOn(clock, {
      readLagMs: 8_000,
      deadlineMs: 20_000,
      policy: { suspension, ...policy },
      ...options,
    });
    await using system = await clock.passUntil(opening);
    const { fake, app } = system;
    fake.group.setMember(ann, [officer, captain]);
    const change = (rankeeId: number, newRankId: number, hold: RequestedHold) =>
      changeAs(app, clock, { rankeeId, newRankId, hold });
    await body({
      ...system,
      suspend: (userId = ann, { forMs = 3 * day } = {}) =>
        change(userId, 0, { kind: 'suspension', endsAt: clock.now() + forMs }),
      temporarily: (newRankId, forMs) => change(ann, newRankId, { kind: 'temporary', endsAt: clock.now() + forMs }),
      hold: async () => {
        const [newest] = await app.store.listHolds({ group: app.group.title, rankeeId: ann, limit: 1 });
        if (newest === undefined) throw new Error('there is no hold');
        return newest;
      },
      held: (userId = ann) => fake.group.held(userId) ?? [],
      pass: async (ms) => {
        await clock.skip(ms - workMs);
        await clock.advance(workMs);
      },
      ask: (newRankId) => clock.passUntil(system.rank(ann, { newRankId })),
    });
    expect(fake.violations()).toEqual([]);
  };
}

async function changeAs(
  app: DaemonContext,
  clock: ManualClock,
  { rankeeId, newRankId, hold }: { rankeeId: number; newRankId: number; hold: RequestedHold },
): Promise<ChangeAnswer> {
  using deadline = deadlineIn(clock, 30_000);
  const request = {
    rankeeId,
    rankeeName: 'Ann',
    rankerId: 0,
    rankerName: 'operator',
    newRankId,
    command: 'test',
    reason: 'spam',
  };
  return clock.passUntil(changeRank(app, { caller: { by, dryRun: false }, request, hold }, deadline));
}

test.concurrent(
  'a suspended member loses all roles, cannot be ranked by any game, and gets exactly the previous roles back',
  withHolds(async ({ suspend, hold, held, pass, ask, app }) => {
    const { change } = await suspend(ann, { forMs: 600_000 });
    expect(change.message).toMatch(/^Ann \(20001\) is suspended until .* UTC as Recruit \(rank 1\), was Captain/);
    expect(held()).toEqual([recruit]);
    expect(await hold()).toMatchObject({ kind: 'suspension', state: 'active', reason: 'spam', changeId: change.id });

    const answer = await ask(20);
    expect([answer.status, codeOf(answer)]).toEqual([403, 'member_suspended']);
    expect(messageOf(answer)).toContain('until');
    expect(held()).toEqual([recruit]);

    await pass(660_000);
    expect(held()).toEqual(before);
    const ended = await hold();
    expect(ended.state).toBe('ended');
    const back = await app.store.findChange(ended.returnChangeId ?? '');
    expect(back).toMatchObject({ state: 'applied', by: 'daemon', demotion: false });
    expect(changeDocument({ change: back as RankChange })).toMatchObject({ who: 'daemon', via: 'daemon' });
    expect((await ask(20)).status).toBe(200);
  }),
);

test.concurrent(
  'a temporary rank is taken back at its end, and an earlier change to the member ends it',
  withHolds(async ({ temporarily, hold, held, pass, ask }) => {
    await temporarily(20, 600_000);
    expect(held()).toEqual([officer]);
    await pass(700_000);
    expect(held()).toEqual(before);
    expect((await hold()).state).toBe('ended');

    await temporarily(20, 600_000);
    await temporarily(10, 600_000); // replaces the first one, and would restore the roles from before both
    expect((await ask(50)).status).toBe(200);
    expect((await hold()).state).toBe('superseded');
    await pass(700_000);
    expect(held()).toEqual([captain]);
  }),
);

const scenarios: Record<
  string,
  { events: (system: System) => Promise<void> | void; state: Hold['state']; roles: number[] | undefined }
> = {
  'nothing happens: the previous roles are given back': {
    events: () => undefined,
    state: 'ended',
    roles: before,
  },
  'the member leaves: nothing is given back': {
    events: ({ fake }) => fake.group.removeMember(ann),
    state: 'forfeited',
    roles: undefined,
  },
  'the member leaves and rejoins: the suspension role is given again, and no previous role is given back': {
    events: async ({ fake, pass, held }) => {
      fake.group.removeMember(ann);
      await pass(11 * minute);
      fake.group.setMember(ann, []);
      await pass(11 * minute);
      expect(held()).toEqual([recruit]);
    },
    state: 'ended',
    roles: [],
  },
  'the member leaves and rejoins at once: the suspension role is given again, and no previous role is given back': {
    events: async ({ fake, pass, held }) => {
      fake.group.removeMember(ann);
      fake.group.setMember(ann, []);
      await pass(11 * minute);
      expect(held()).toEqual([recruit]);
    },
    state: 'ended',
    roles: [],
  },
  'the member rejoins, and a moderator then changes the roles: the suspension is over': {
    events: async ({ fake, pass, held, clock }) => {
      fake.group.removeMember(ann);
      fake.group.setMember(ann, []);
      await pass(11 * minute);
      expect(held()).toEqual([recruit]);
      fake.group.change(ann, [], clock.monotonic());
    },
    state: 'superseded',
    roles: [],
  },
  'a moderator gives the member a role: the suspension is over, and nothing is written': {
    events: ({ fake, clock }) => fake.group.change(ann, [captain], clock.monotonic()),
    state: 'superseded',
    roles: [captain],
  },
  'a previous role is deleted: the others are given back': {
    events: ({ fake }) => {
      fake.group.roles = fake.group.roles.filter(({ id }) => id !== officer);
    },
    state: 'ended',
    roles: [captain],
  },
  'the suspension role is deleted: the previous roles are given back': {
    events: ({ fake, clock }) => {
      fake.group.roles = fake.group.roles.filter(({ id }) => id !== recruit);
      fake.group.change(ann, [], clock.monotonic());
    },
    state: 'ended',
    roles: before,
  },
  'the member leaves, rejoins and leaves again: nothing is given back': {
    events: async ({ fake, pass }) => {
      fake.group.removeMember(ann);
      await pass(11 * minute);
      fake.group.setMember(ann, []);
      await pass(11 * minute);
      fake.group.removeMember(ann);
    },
    state: 'forfeited',
    roles: undefined,
  },
  'Roblox is down at the end: the roles are given back once it responds': {
    events: async ({ fake, pass, hold }) => {
      fake.faults.add({ operation: 'any', kind: 'status 503', times: always });
      await pass(40 * minute);
      expect((await hold()).state).toBe('active');
      fake.faults.clear();
    },
    state: 'ended',
    roles: before,
  },
  'the Roblox key is dead at the end: the roles are given back as soon as it works again': {
    events: async ({ fake, pass, hold }) => {
      fake.credential.enabled = false;
      await pass(40 * minute);
      expect((await hold()).state).toBe('active');
      fake.credential.enabled = true;
      await pass(2 * minute);
      expect((await hold()).state).toBe('ended');
    },
    state: 'ended',
    roles: before,
  },
  'the write that gives a role back gets no response: it is reconciled by a read, and made only once': {
    events: ({ fake }) => fake.faults.add({ operation: 'assign', kind: 'reset', when: 'after', times: 6 }),
    state: 'ended',
    roles: before,
  },
};

test.concurrent.each(Object.entries(scenarios))('during a suspension, %s', (_, { events, state, roles }) =>
  withHolds(async (system) => {
    const { suspend, pass, hold, fake } = system;
    await suspend(ann, { forMs: 30 * minute });
    await pass(minute);
    await events(system);
    await pass(40 * minute);
    expect([(await hold()).state, fake.group.held(ann)]).toEqual([state, roles]);
  })(),
);

test.concurrent(
  'a refused return becomes stuck, with an event and a log line; it is retried after an hour, and at once after a reload',
  withHolds(async ({ suspend, pass, hold, held, fake, reload, app, logLines }) => {
    for (const retry of [() => pass(60 * minute), reload]) {
      fake.group.setMember(ann, [officer, captain]);
      await suspend(ann, { forMs: 10 * minute });
      fake.group.setMember(actor, [officer]);
      await pass(12 * minute);
      expect(await hold()).toMatchObject({ state: 'stuck', code: 'above_acting_account' });
      fake.group.setMember(actor, [admin]);
      await pass(5 * minute);
      expect(held()).toEqual([recruit]);
      await retry();
      await pass(minute);
      expect([(await hold()).state, held()]).toEqual(['ended', before]);
    }
    const events = await app.store.listAudit({ action: 'suspension', limit: 20, oldestFirst: true });
    expect(events.map(({ action }) => action.slice(11))).toEqual(['begin', 'stuck', 'end', 'begin', 'stuck', 'end']);
    expect(logLines.filter((line) => line.includes('cannot be ended yet'))).toHaveLength(2);
  }),
);

test.concurrent(
  'of two simultaneous suspensions, only one begins; it can be extended, and lifting it restores exactly the previous roles',
  withHolds(async ({ suspend, hold, held, pass, app, clock }) => {
    const both = await Promise.all([suspend(), suspend()]);
    expect(both.map(({ change }) => change.code).toSorted()).toEqual(['already_suspended', null]);
    const { endsAt = 0 } = await hold();
    await extendHold(app, { rankeeId: ann, by, forMs: day });
    expect((await hold()).endsAt).toBe(endsAt + day);
    await pass(minute);
    const caller = { by, dryRun: false };
    await clock.passUntil(liftHold(app, { rankeeId: ann, caller, force: false }));
    expect([(await hold()).state, held()]).toEqual(['lifted', before]);
    await expect(liftHold(app, { rankeeId: ann, caller, force: false })).rejects.toMatchObject({
      code: 'not_suspended',
    });
  }),
);

test.concurrent(
  'a suspension that is extended while its end is queued, or its member is read, continues until the new end',
  withHolds(async ({ suspend, hold, held, pass, app, clock, fake }) => {
    await suspend();
    await pass(minute);
    const caller = { by: 'daemon', dryRun: false };
    const due = { ...(await hold()), endsAt: clock.now() }; // stale: a worker can have read an earlier end
    await clock.passUntil(checkHold(app, { hold: due, caller, as: 'ended' }));
    expect([(await hold()).state, held()]).toEqual(['active', [recruit]]);
    fake.group.removeMember(ann);
    const { endsAt = 0 } = await hold();
    const store = Object.assign(Object.create(app.store), {
      updateHold: async (...update: Parameters<typeof app.store.updateHold>) => {
        await extendHold(app, { rankeeId: ann, by, forMs: day });
        return app.store.updateHold(...update);
      },
    });
    await clock.passUntil(checkHold({ ...app, store }, { hold: await hold(), caller, as: undefined }));
    expect(await hold()).toMatchObject({ state: 'active', endsAt: endsAt + day, awaySince: expect.any(Number) });
  }),
);

test.concurrent(
  'lifting a suspension does not change a member whom someone else has changed, unless forced',
  withHolds(async ({ suspend, hold, held, pass, app, clock, fake }) => {
    await suspend();
    await pass(minute);
    fake.group.setMember(ann, [captain]);
    const lift = (force: boolean) =>
      clock.passUntil(liftHold(app, { rankeeId: ann, caller: { by, dryRun: false }, force }));
    await expect(lift(false)).rejects.toMatchObject({ code: 'conflict' });
    expect([(await hold()).state, held()]).toEqual(['superseded', [captain]]);
    await lift(true);
    expect([(await hold()).state, held()]).toEqual(['lifted', before]);
  }),
);

test.concurrent(
  'undoing a suspension lifts it',
  withHolds(async ({ suspend, hold, held, pass, app, clock }) => {
    const { change } = await suspend();
    await pass(minute);
    const selection = { ids: [change.id] };
    const { members, changes, undoId } = await findUndoTargets(app, selection);
    const command = { selection, undoId, by, dryRun: false };
    await clock.passUntil(
      runUndo(app, { members, changes, command }, { stop: new AbortController().signal, report: () => undefined }),
    );
    expect([(await hold()).state, held()]).toEqual(['lifted', before]);
  }),
);

async function undo({ app, clock }: System, ids: string[]) {
  const selection = { ids };
  const { members, answered, changes, undoId } = await findUndoTargets(app, selection);
  const command = { selection, undoId, by, dryRun: false };
  const control = { stop: new AbortController().signal, report: () => undefined };
  const { results } = await clock.passUntil(runUndo(app, { members, answered, changes, command }, control));
  return results;
}

test.concurrent(
  'a suspension that was lifted is in force again once the lift is undone, until its original end',
  withHolds(async (system) => {
    const { suspend, hold, held, pass, ask, app, clock } = system;
    await suspend(ann, { forMs: 60 * minute });
    await pass(minute);
    const { id, endsAt } = await hold();
    const { finished } = await clock.passUntil(
      liftHold(app, { rankeeId: ann, caller: { by, dryRun: false }, force: false }),
    );
    expect(held()).toEqual(before);
    await pass(minute);
    const [result] = await undo(system, [finished.change.id]);
    expect(result).toMatchObject({ state: 'put_back' });
    expect(result && 'change' in result && result.change.message).toContain('The suspension is in force again, until');
    expect([await hold(), held()]).toMatchObject([{ id, endsAt, state: 'active' }, [recruit]]);
    expect(codeOf(await ask(20))).toBe('member_suspended');
    await pass(61 * minute);
    expect([(await hold()).state, held()]).toEqual(['ended', before]);
  }),
);

test.concurrent(
  'undoing a change that ended a temporary rank reinstates it or, past its end, restores the previous roles at once',
  withHolds(async (system) => {
    const { temporarily, hold, held, pass, ask } = system;
    for (const isPast of [false, true]) {
      await temporarily(20, 30 * minute);
      const { id, endsAt = 0 } = await hold();
      expect((await ask(10)).status).toBe(200);
      expect((await hold()).state).toBe('superseded');
      await pass(isPast ? 40 * minute : minute);
      const { returnChangeId = '' } = await hold();
      await undo(system, [returnChangeId]);
      expect([await hold(), held()]).toMatchObject([
        { id, endsAt, state: isPast ? 'ended' : 'active' },
        isPast ? before : [officer],
      ]);
      await pass(40 * minute);
      expect([(await hold()).state, held()]).toEqual(['ended', before]);
    }
  }),
);

test.concurrent.each<[string, (system: System, id: string) => unknown]>([
  ['with a specific role', () => undefined],
  [
    'with a specific role, and whose hold was stuck before it was extended',
    ({ app }, id) => app.store.updateHold(id, (hold) => ({ holds: [{ ...hold, state: 'stuck' }], events: [] })),
  ],
])('a member who was suspended %s and rejoins is given that role again', (_, prepare) =>
  withHolds(async (system) => {
    const { hold, held, pass, fake, app, clock } = system;
    const asked = { kind: 'suspension', role: sampleRoles.trainee, endsAt: clock.now() + day } as const;
    await changeAs(app, clock, { rankeeId: ann, newRankId: 0, hold: asked });
    await prepare(system, (await hold()).id);
    await pass(2 * minute);
    fake.group.removeMember(ann);
    fake.group.setMember(ann, []);
    await pass(11 * minute);
    expect([(await hold()).state, held()]).toEqual(['active', [sampleRoles.trainee]]);
  })(),
);

test.concurrent(
  'a member who cannot be suspended again does not prevent others from being suspended again',
  withHolds(async ({ app, clock, fake, held, pass }) => {
    const others = [20_002, ann];
    for (const rankeeId of others) {
      const role = rankeeId === ann ? officer : recruit;
      fake.group.setMember(rankeeId, [captain]);
      const asked = { kind: 'suspension', role, endsAt: clock.now() + day } as const;
      await changeAs(app, clock, { rankeeId, newRankId: 0, hold: asked });
    }
    await pass(2 * minute);
    for (const rankeeId of others) {
      fake.group.removeMember(rankeeId);
      fake.group.setMember(rankeeId, []);
    }
    Object.assign(fake.group.role(officer) ?? {}, { rank: 250 }); // above the acting account
    await pass(11 * minute);
    expect(others.map(held)).toEqual([[recruit], []]);
  }),
);

test.concurrent(
  'repeated undos alternately reopen a temporary rank and end it again, each time by the change that had ended it',
  withHolds(async (system) => {
    const { temporarily, hold, ask, app } = system;
    await temporarily(20, 90 * minute);
    await ask(10);
    const { returnChangeId } = await hold();
    for (const state of ['active', 'superseded', 'active', 'superseded', 'active']) {
      const [newest] = await app.store.listChanges({ rankeeId: ann, limit: 1 });
      await undo(system, [newest?.id ?? '']);
      expect(await hold()).toMatchObject({ state, ...(state === 'superseded' && { returnChangeId }) });
    }
  }),
);

/** Changes to holds that Roblox confirms and then loses. `first` prepares the change that `does` makes. */
const lostChanges: Record<
  string,
  { first: (system: System) => Promise<unknown>; does: (system: System) => Promise<unknown> }
> = {
  'the undo of a suspension': {
    first: ({ suspend }) => suspend(ann, { forMs: 60 * minute }),
    does: undoNewest,
  },
  'the undo of a lift': {
    first: async (system) => {
      await system.suspend(ann, { forMs: 60 * minute });
      await system.pass(minute);
      await lift(system);
    },
    does: undoNewest,
  },
  'the undo of a suspension over a temporary rank': {
    first: async (system) => {
      await system.temporarily(20, 90 * minute);
      await system.pass(minute);
      await system.suspend(ann, { forMs: 60 * minute });
    },
    does: undoNewest,
  },
  'the undo of that undo': {
    first: async (system) => {
      await system.temporarily(20, 90 * minute);
      await system.pass(minute);
      await system.suspend(ann, { forMs: 60 * minute });
      await system.pass(minute);
      await undoNewest(system);
    },
    does: undoNewest,
  },
  'the undo of a change that ended a temporary rank, after its original end': {
    first: async (system) => {
      await system.temporarily(20, 30 * minute);
      await system.ask(10);
      await system.pass(40 * minute);
    },
    does: undoNewest,
  },
  'a change that ended a temporary rank': {
    first: ({ temporarily }) => temporarily(20, 90 * minute),
    does: ({ ask }) => ask(10),
  },
  'a suspension over a temporary rank': {
    first: ({ temporarily }) => temporarily(20, 90 * minute),
    does: ({ suspend }) => suspend(ann, { forMs: 60 * minute }),
  },
  'a lift': { first: ({ suspend }) => suspend(ann, { forMs: 60 * minute }), does: lift },
};

async function undoNewest(system: System) {
  const [newest] = await system.app.store.listChanges({ rankeeId: ann, limit: 1 });
  expect(await undo(system, [newest?.id ?? ''])).toMatchObject([{ state: 'put_back' }]);
}

function lift({ app, clock }: System) {
  return clock.passUntil(liftHold(app, { rankeeId: ann, caller: { by, dryRun: false }, force: false }));
}

test.concurrent.each(Object.entries(lostChanges))(
  'once a read shows that Roblox lost %s, roles and holds are restored',
  (_, { first, does }) =>
    withHolds(async (system) => {
      const { app, fake, held, pass, clock } = system;
      const state = async () => {
        const holds = await app.store.listHolds({ group: app.group.title, rankeeId: ann, limit: 9 });
        const comparable = ({ id, kind, state, endsAt, rolesBefore, rolesDuring, returnChangeId }: Hold) => ({
          ...{ id, kind, state, endsAt, rolesBefore, rolesDuring, returnChangeId },
        });
        return { roles: held(), holds: holds.map(comparable) };
      };
      await first(system);
      await pass(minute);
      const before = await state();
      const open = before.holds.filter(({ state }) => state === 'active');
      fake.writesOnlyEcho = true;
      await does(system);
      fake.writesOnlyEcho = false;
      expect(await state()).not.toEqual(before);
      const [change] = await app.store.listChanges({ rankeeId: ann, limit: 1 });
      await requestLateRead(app, change?.id ?? '');
      await clock.advance(40_000);
      expect(await app.store.findChange(change?.id ?? '')).toMatchObject({ state: 'failed' });
      const now = await state();
      const others = now.holds.filter(({ id }) => !before.holds.some((hold) => hold.id === id));
      expect(others.filter(({ state }) => state !== 'superseded')).toEqual([]);
      expect({ ...now, holds: now.holds.filter((hold) => !others.includes(hold)) }).toEqual(before);
      await pass(100 * minute);
      if (open.length > 0) expect(held()).toEqual(open[0]?.rolesBefore.filter((id) => id !== sampleRoles.base));
    })(),
);

test.concurrent(
  'undoing the return from a suspension that has reached its end leaves the member unchanged',
  withHolds(async (system) => {
    const { suspend, hold, held, pass } = system;
    await suspend(ann, { forMs: 10 * minute });
    await pass(12 * minute);
    const { returnChangeId = '' } = await hold();
    expect(await undo(system, [returnChangeId])).toMatchObject([{ state: 'already' }]);
    expect([(await hold()).state, held()]).toEqual(['ended', before]);
  }),
);

test.concurrent(
  'an undo skips and lists a member whose suspension it cannot restore',
  withHolds(async (system) => {
    const { suspend, hold, held, pass, app, fake, clock } = system;
    await suspend(ann, { forMs: 60 * minute });
    await pass(minute);
    fake.group.removeMember(ann);
    fake.group.setMember(ann, []);
    await pass(11 * minute);
    const [renewal] = await app.store.listChanges({ rankeeId: ann, limit: 1 });
    expect(renewal?.hold?.does).toBe('renew');
    const [result] = await undo(system, [renewal?.id ?? '']);
    expect(result).toMatchObject({ rankeeId: ann, state: 'refused', error: { code: 'member_suspended' } });
    await pass(minute);
    await clock.passUntil(liftHold(app, { rankeeId: ann, caller: { by, dryRun: false }, force: false }));
    await pass(minute);
    fake.group.roles = fake.group.roles.filter(({ id }) => id !== recruit);
    await pass(minute);
    const { returnChangeId = '' } = await hold();
    expect(await undo(system, [returnChangeId])).toMatchObject([{ state: 'refused', error: { code: 'unknown_rank' } }]);
    expect([(await hold()).state, held()]).toEqual(['lifted', []]);
  }),
);

test.concurrent(
  'a member who leaves and rejoins within seconds of a suspension is suspended again, and no write counts as lost',
  withHolds(async ({ suspend, hold, held, pass, fake, clock, app, app: { trust } }) => {
    const { change } = await suspend(ann, { forMs: 60 * minute });
    await clock.advance(2_000);
    fake.group.removeMember(ann);
    fake.group.setMember(ann, []);
    await pass(minute);
    expect(await app.store.findChange(change.id)).toMatchObject({ state: 'applied' });
    expect([trust.surprises, held()]).toEqual([[], []]);
    await pass(11 * minute);
    expect([(await hold()).state, held()]).toEqual(['active', [recruit]]);
    await pass(60 * minute);
    expect([(await hold()).state, held()]).toEqual(['ended', []]);
  }),
);

test.concurrent(
  'two successive suspensions each restore exactly the previous roles, even on top of a temporary rank',
  withHolds(async ({ suspend, temporarily, hold, held, pass }) => {
    for (const forMs of [10 * minute, 20 * minute]) {
      await suspend(ann, { forMs });
      await pass(forMs + 2 * minute);
      expect([(await hold()).state, held()]).toEqual(['ended', before]);
    }
    await temporarily(20, 60 * minute);
    await suspend(ann, { forMs: 10 * minute });
    await pass(12 * minute);
    expect([(await hold()).state, held()]).toEqual(['ended', before]);
  }),
);

test.concurrent(
  'every member gets exactly the previous roles back, whatever they are',
  withHolds(async ({ suspend, held, pass, fake, clock, app }) => {
    const roles = fc.sample(fc.subarray([sampleRoles.trainee, officer, captain, recruit]), { numRuns: 40, seed: 7 });
    const members = roles.map((held, index) => ({ userId: 50_000 + index, held: held.toSorted((a, b) => a - b) }));
    const endsAt = clock.now() + 60 * minute;
    for (const { userId, held } of members) {
      fake.group.setMember(userId, held);
      const { change } = await suspend(userId, { forMs: endsAt - clock.now() });
      expect(change.state).toBe('applied');
    }
    await pass(endsAt + 5 * minute - clock.now());
    expect(members.map(({ userId }) => held(userId))).toEqual(members.map((one) => one.held));
    const holds = await app.store.listHolds({ group: app.group.title, limit: 99 });
    expect(new Set(holds.map(({ state }) => state))).toEqual(new Set(['ended']));
  }),
);

test.concurrent(
  'three hundred suspensions that are due in one second end within minutes and leave half of the budget to callers',
  withHolds(
    async ({ suspend, clock, pass, app, fake, rank }) => {
      const members = Array.from({ length: 300 }, (_, index) => 30_000 + index);
      const endsAt = clock.now() + 30 * minute;
      for (const userId of members) {
        fake.group.setMember(userId, [officer]);
        await suspend(userId, { forMs: endsAt - clock.now() });
      }
      await clock.advance(3 * minute); // leaves time for each suspension's late read
      await pass(endsAt - clock.now());
      const begun = clock.monotonic();
      const callers = Array.from({ length: 60 }, (_, index) => 40_000 + index);
      for (const userId of callers) {
        fake.group.setMember(userId, []);
        const askedAt = clock.monotonic();
        const answer = await clock.passUntil(rank(userId));
        expect(answer.status).toBe(200);
        expect(clock.monotonic() - askedAt).toBeLessThan(5_000);
      }
      await clock.advance(begun + 40_000 - clock.monotonic());
      const isBack = (userId: number) => fake.group.held(userId)?.join() === String(officer);
      // 40 s after the end, at most half of a minute's budget may be used up.
      expect(members.filter(isBack).length).toBeLessThanOrEqual(150);
      await clock.advance(4 * minute);
      const left = await app.store.listHolds({
        group: app.group.title,
        states: ['active', 'ending', 'stuck'],
        limit: 1,
      });
      expect(left).toEqual([]);
      expect(members.every(isBack)).toBe(true);
    },
    { policy: { suspension: { role: undefined, maxMs: day } } },
  ),
);

test.each(['has left', 'has left and rejoined'])(
  'a key cannot end the suspension of a member who %s, because no rule would be checked',
  async (what) => {
    await using system = await openCloudApp({ scopes: ['verify', 'rank', 'suspend'] });
    const { fake, app, url, secret: key } = system;
    fake.group.setMember(ann, [officer]);
    const ask = (path: string, rest = {}) =>
      send(`${url}/v2/${path}?placeid=1`, { method: 'POST', key, body: { robloxUserId: ann, ...rest } });
    expect((await ask('suspend', { duration: '1d' })).status).toBe(200);
    fake.group.removeMember(ann);
    if (what !== 'has left') fake.group.setMember(ann, []);
    expect((await ask('unsuspend')).status).toBe(404);
    const [hold] = await app.store.listHolds({ group: app.group.title, rankeeId: ann, limit: 1 });
    expect(hold).toMatchObject({ state: 'active' });
  },
);

test('a key that may not give the previous roles cannot end the suspension of a member whom someone else has changed', async () => {
  await using system = await openCloudApp({
    ...{ scopes: ['verify', 'rank', 'suspend'], policy: { suspension: { role: recruit, maxMs: day } } },
  });
  const { fake, app, url, secret, newKey } = system;
  fake.group.setMember(ann, [captain]);
  const ask = (path: string, key: string, rest = {}) =>
    send(`${url}/v2/${path}?placeid=1`, { method: 'POST', key, body: { robloxUserId: ann, ...rest } });
  const lift = async (key: string) => {
    const answer = await ask('unsuspend', key);
    const [hold] = await app.store.listHolds({ group: app.group.title, rankeeId: ann, limit: 1 });
    return [codeOf(answer), hold?.state];
  };
  expect((await ask('suspend', secret, { duration: '1d' })).status).toBe(200);
  fake.group.setMember(ann, [recruit, officer]);
  expect(await lift(await newKey('low', { maxRank: 20 }))).toEqual(['rank_not_allowed', 'active']);
  expect(await lift(await newKey('down', { direction: 'demote' }))).toEqual(['key_not_allowed', 'active']);
  expect(await lift(secret)).toEqual(['not_suspended', 'superseded']);
});
