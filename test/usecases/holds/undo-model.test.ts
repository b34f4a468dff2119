import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openRanking, type RankingApp } from '../../../src/app.ts';
import { deadlineIn, systemClock } from '../../../src/base/clock.ts';
import { RankdError } from '../../../src/base/errors.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { isOpenHold } from '../../../src/core/holds.ts';
import type { Hold, Member } from '../../../src/core/model.ts';
import { heldIds } from '../../../src/core/role-scheme.ts';
import { sampleGroup } from '../../../src/platforms/sample-group.ts';
import { SimulatedPlatform } from '../../../src/platforms/simulated.ts';
import type { Clock, Platform, RoleWrite } from '../../../src/ports/index.ts';
import { changeRank } from '../../../src/usecases/change/change-rank.ts';
import { makeLateReads, requestLateRead } from '../../../src/usecases/change/late-read.ts';
import type { ChangeCaller, RequestedHold } from '../../../src/usecases/change/ranking.ts';
import { recoverChanges } from '../../../src/usecases/change/reconcile-change.ts';
import { checkHold } from '../../../src/usecases/holds/end-hold.ts';
import { endDueHolds } from '../../../src/usecases/holds/hold-rounds.ts';
import { extendHold, liftHold } from '../../../src/usecases/holds/holds.ts';
import { createKey } from '../../../src/usecases/keys/keys.ts';
import { findUndoTargets, runUndo, type UndoRun } from '../../../src/usecases/undo/undo-changes.ts';
import { platformWith } from '../../support/platform-with.ts';
import { returnStore, storeOf } from '../../support/store-of-app.ts';
import { TempDir } from '../../support/temp-dir.ts';

const members = [1001, 1003, 1004] as const;
/**
 * Members who can leave the group. The third member never leaves, so that one member's expected state is always
 * certain.
 */
const leavers = [1001, 1003] as const;
const minute = 60_000;
const stop = new AbortController().signal;
const call = { signal: stop, deadlineAt: Number.POSITIVE_INFINITY, lane: 'test' };

/** A member's roles and open hold, which an undo must restore. */
interface State {
  roles: number[];
  hold:
    | (Pick<Hold, 'id' | 'kind' | 'rolesBefore' | 'rolesDuring'> & {
        endsAt: number | undefined;
        keyId: string | undefined;
      })
    | undefined;
}

function holdState({ id, kind, endsAt, rolesBefore, rolesDuring, keyId }: Hold): State['hold'] {
  return { id, kind, endsAt, rolesBefore, rolesDuring, keyId };
}

/** A change that has not been undone, with the state before it. */
interface Entry {
  id: string;
  isByKey: boolean;
  before: State;
}

/**
 * `live`: the member's changes that have not been undone, oldest first. `undo`: the member's newest change, if it is an
 * undo.
 */
interface Story {
  live: Entry[];
  /** True once the member has left the group, even after rejoining. */
  hasLeft: boolean;
  undo: { id: string; before: State; live: Entry[] } | undefined;
}

/** rankd on the simulated group, without a daemon: the test itself advances the clock and ends holds. */
class World {
  readonly app: RankingApp;
  readonly stories = new Map<number, Story>(
    members.map((member) => [member, { live: [], undo: undefined, hasLeft: false }]),
  );
  readonly #key: ChangeCaller;
  readonly #pass: (ms: number) => void;
  readonly #group: GroupWithLeavers;

  private constructor(
    app: RankingApp,
    key: ChangeCaller,
    { pass, group }: { pass: (ms: number) => void; group: GroupWithLeavers },
  ) {
    [this.app, this.#key, this.#pass, this.#group] = [app, key, pass, group];
  }

  static async open(dataDir: string): Promise<World> {
    let skipped = 0;
    const clock = { ...systemClock, now: () => systemClock.now() + skipped };
    const { config } = loadConfig({ flags: { 'platform.kind': 'simulated' }, env: {}, cwd: dataDir });
    Object.assign(config, await storeOf(dataDir));
    const simulated = SimulatedPlatform.open({ file: join(dataDir, 'group.db'), seed: sampleGroup });
    const group = new GroupWithLeavers(simulated, clock);
    const app = await openRanking({ config, dataDir, overrides: { clock, platform: group.platform } });
    const keyRequest = {
      name: 'game',
      mode: 'live',
      scopes: ['rank', 'suspend'],
      place: { id: 1 },
      by: 'cli:ann@host',
    } as const;
    const { key } = await createKey(app, { ...keyRequest, scopes: [...keyRequest.scopes] });
    const caller = { by: `key:${key.id}`, keyId: key.id, placeId: 1, rules: key, dryRun: false };
    const pass = (ms: number) => {
      skipped += ms;
    };
    return new World({ ...app, breaker: undefined }, caller, { pass, group });
  }

  async state(userId: number): Promise<State> {
    const member = await this.app.platform.getMember(userId, call);
    const { roles } = await this.app.group.scheme(call);
    const holds = await this.app.store.listHolds({ group: this.app.group.title, rankeeId: userId, limit: 99 });
    const open = holds.find(isOpenHold);
    return { roles: heldIds(roles, { roleIds: member?.roleIds ?? [] }), hold: open && holdState(open) };
  }

  /** Runs `work`, and records each change that altered a member's state. */
  async recordEffects(work: () => Promise<unknown>): Promise<void> {
    const before = new Map<number, State>();
    const latest = new Map<number, string | undefined>();
    for (const member of members) {
      before.set(member, await this.state(member));
      latest.set(member, (await this.app.store.latestChange(member)).latestId);
    }
    await work().catch(() => undefined); // a rule may refuse it
    for (const member of members) {
      const { latestId } = await this.app.store.latestChange(member);
      const state = before.get(member);
      if (latestId === latest.get(member) || latestId === undefined || state === undefined) continue;
      const change = await this.app.store.findChange(latestId);
      if (JSON.stringify(await this.state(member)) === JSON.stringify(state)) continue;
      const story = this.#story(member);
      story.live.push({ id: latestId, isByKey: change?.keyId !== undefined, before: state });
      story.undo = undefined;
    }
  }

  change(
    rankeeId: number,
    { newRankId = 0, hold, asKey }: { newRankId?: number; hold?: RequestedHold; asKey: boolean },
  ) {
    return this.recordEffects(async () => {
      using deadline = deadlineIn(this.app.clock, 30_000);
      const request = { rankeeId, rankeeName: 'Ann', rankerId: 0, rankerName: '', newRankId };
      const command = { caller: this.#caller(asKey), request, ...(hold !== undefined && { hold }) };
      await changeRank(this.app, command, deadline);
    });
  }

  endsIn(minutes: number): { endsAt: number } {
    return { endsAt: this.app.clock.now() + minutes * minute };
  }

  lift(rankeeId: number, asKey: boolean) {
    return this.recordEffects(() => liftHold(this.app, { rankeeId, caller: this.#caller(asKey), force: false }));
  }

  async extend(rankeeId: number): Promise<void> {
    const hold = await extendHold(this.app, { rankeeId, by: 'cli:ann@host', forMs: 5 * minute }).catch(() => undefined);
    const { live, undo } = this.#story(rankeeId);
    // An undo does not revert an extension.
    for (const { before } of [...live, ...(undo === undefined ? [] : [undo, ...undo.live])])
      if (before.hold?.id === hold?.id) before.hold = hold && holdState(hold);
  }

  async pass(minutes: number): Promise<void> {
    this.#pass(minutes * minute);
  }

  endDue() {
    return this.recordEffects(() => endDueHolds(this.app, { retryNow: true, stop, report: () => undefined }));
  }

  /** Checks every member with an active hold, as the daemon does every ten minutes. */
  sweep() {
    return this.recordEffects(async () => {
      const active = await this.app.store.listHolds({ group: this.app.group.title, states: ['active'], limit: 99 });
      for (const hold of active)
        await checkHold(this.app, { hold, caller: { by: 'daemon', dryRun: false }, as: undefined }).catch(
          () => undefined,
        );
    });
  }

  async leave(member: number): Promise<void> {
    await this.#group.leave(member);
    this.#story(member).hasLeft = true;
  }

  async join(member: number): Promise<void> {
    this.#group.join(member);
  }

  /**
   * Reverts a member's newest change directly in the group, and expects rankd to restore the hold from before the
   * change, too.
   */
  async revertInGroup(member: number): Promise<void> {
    const story = this.#story(member);
    const { undo, live, hasLeft } = story;
    const newest = undo ?? live.at(-1);
    const { latestId } = await this.app.store.latestChange(member);
    if (newest === undefined || latestId !== newest.id || hasLeft) return;
    const now = await this.state(member);
    if (now.roles.join() === newest.before.roles.join()) return;
    await this.#group.give(member, newest.before.roles);
    await requestLateRead(this.app, newest.id);
    const ended = new AbortController();
    const reading = makeLateReads(() => this.app, { stop: ended.signal, report: () => undefined });
    while (this.app.trust.reads.length > 0) await delay(1);
    ended.abort();
    await reading;
    const tries = { underWay: new Set<string>(), last: new Map<string, number>() };
    await recoverChanges(this.app, { report: () => undefined, stop, tries });
    const what = `${newest.id} is reverted in the group`;
    expect({ what, ...(await this.state(member)) }).toEqual({ what, ...newest.before });
    this.stories.set(member, { ...story, live: undo?.live ?? live.slice(0, -1), undo: undefined });
  }

  /** Undoes a member's newest changes, and expects the member to have the roles and the hold from before them. */
  async undoNewest(member: number, count: number): Promise<void> {
    const { live } = this.#story(member);
    const undone = live.slice(-count);
    if (undone.length > 0) await this.#undo({ ids: undone.map(({ id }) => id) }, [[member, undone]]);
  }

  /** Undoes all changes by the key. Expects no change to a member whose newest change is not the key's. */
  async undoKey(): Promise<void> {
    const expected = members.map((member): [number, Entry[]] => {
      const { live } = this.#story(member);
      const first = live.findIndex(({ isByKey }) => isByKey);
      return [member, first >= 0 && live.at(-1)?.isByKey ? live.slice(first) : []];
    });
    if (expected.some(([, undone]) => undone.length > 0)) await this.#undo({ keyId: this.#key.keyId }, expected);
  }

  async undoTheUndo(member: number): Promise<void> {
    const { undo } = this.#story(member);
    if (undo === undefined) return;
    const before = await this.state(member);
    const { latestId: last } = await this.app.store.latestChange(member);
    const results = await this.#run({ ids: [undo.id] });
    await this.#expect(member, { previous: undo.before, now: before, results }, `undo of ${undo.id}`);
    const { latestId = '' } = await this.app.store.latestChange(member);
    const story = this.#story(member);
    const isDone = latestId !== last;
    this.stories.set(member, {
      ...story,
      live: isDone ? undo.live : story.live,
      undo: isDone ? { id: latestId, before, live: story.live } : undo,
    });
  }

  async #undo(selection: { ids?: string[]; keyId?: string | undefined }, expected: Array<[number, Entry[]]>) {
    const states = new Map<number, { state: State; latestId: string | undefined }>();
    for (const [member] of expected) {
      const { latestId } = await this.app.store.latestChange(member);
      states.set(member, { state: await this.state(member), latestId });
    }
    const results = await this.#run(selection);
    for (const [member, undone] of expected) {
      const { state: before, latestId: last } = states.get(member) ?? {};
      const [earliest] = undone;
      if (before === undefined) continue;
      const previous = earliest?.before ?? before;
      await this.#expect(member, { previous, now: before, results }, `undo of ${undone.map(({ id }) => id)}`);
      const { latestId } = await this.app.store.latestChange(member);
      if (latestId === undefined || latestId === last) continue; // the undo had nothing to restore
      const story = this.#story(member);
      const live = story.live.slice(0, story.live.length - undone.length);
      this.stories.set(member, { ...story, live, undo: { id: latestId, before, live: story.live } });
    }
  }

  async #run(selection: { ids?: string[]; keyId?: string | undefined }): Promise<UndoRun['results']> {
    const { members, answered, changes, undoId } = await findUndoTargets(this.app, selection);
    const command = { selection, undoId, by: 'cli:ann@host', dryRun: false };
    const run = await runUndo(this.app, { members, answered, changes, command }, { stop, report: () => undefined });
    return [...run.results, ...answered];
  }

  /**
   * Expects the member to be in the state `previous`. A hold whose end has passed is not reopened, so the roles from
   * before the hold are expected instead. If the member has left and the undo restored nothing, expects the state
   * `now`, from just before the undo.
   */
  async #expect(
    member: number,
    { previous, now, results }: { previous: State; now: State; results: UndoRun['results'] },
    what: string,
  ): Promise<void> {
    const { state } = results.find(({ rankeeId }) => rankeeId === member) ?? {};
    if (this.#story(member).hasLeft && state !== 'put_back') {
      expect({ what, ...(await this.state(member)) }).toEqual({ what, ...now });
      return;
    }
    const { roles, hold } = previous;
    const isOver = hold?.endsAt !== undefined && hold.endsAt <= this.app.clock.now() && now.hold?.id !== hold.id;
    const expected = isOver ? { roles: hold.rolesBefore, hold: undefined } : { roles, hold };
    expect({ what, ...(await this.state(member)) }).toEqual({ what, ...expected });
  }

  #story(member: number): Story {
    const story = this.stories.get(member);
    if (story === undefined) throw new Error(`no member ${member}`);
    return story;
  }

  #caller(asKey: boolean): ChangeCaller {
    return asKey ? this.#key : { by: 'cli:ann@host', dryRun: false };
  }
}

/** The simulated group, whose members can leave and then rejoin without their roles. */
class GroupWithLeavers {
  readonly platform: Platform;
  readonly #inner: Platform;
  readonly #away = new Set<number>();
  readonly #joinedAt = new Map<number, number>();
  readonly #clock: Pick<Clock, 'now'>;

  constructor(inner: Platform, clock: Pick<Clock, 'now'>) {
    this.#inner = inner;
    this.#clock = clock;
    const write = (change: RoleWrite, work: () => Promise<Member | undefined>) =>
      this.#away.has(change.userId)
        ? Promise.reject<undefined>(new RankdError('member_not_found', 'The user is away.'))
        : work();
    this.platform = platformWith(inner, {
      getMember: async (userId, call) => {
        const member = this.#away.has(userId) ? undefined : await inner.getMember(userId, call);
        const joinedAt = this.#joinedAt.get(userId);
        return member && { ...member, ...(joinedAt !== undefined && { joinedAt }) };
      },
      assignRole: (change, bounds) => write(change, () => inner.assignRole(change, bounds)),
      unassignRole: (change, bounds) => write(change, () => inner.unassignRole(change, bounds)),
    });
  }

  async leave(userId: number): Promise<void> {
    await this.give(userId, []);
    this.#away.add(userId);
  }

  join(userId: number): void {
    if (this.#away.delete(userId)) this.#joinedAt.set(userId, this.#clock.now());
  }

  /** Sets the member's custom roles to exactly these (ids), without involving rankd. */
  async give(userId: number, roles: readonly number[]): Promise<void> {
    const held = (await this.#inner.getMember(userId, call))?.roleIds ?? [];
    const custom = (await this.#inner.roles(call)).filter(({ kind }) => kind === 'custom').map(({ id }) => id);
    for (const roleId of custom) {
      const isWanted = roles.includes(roleId);
      if (isWanted && !held.includes(roleId)) await this.#inner.assignRole({ userId, roleId }, call);
      if (!isWanted && held.includes(roleId)) await this.#inner.unassignRole({ userId, roleId }, call);
    }
  }
}

type Operation = { name: string; run: (world: World) => Promise<void> };

const member = fc.constantFrom(...members);
const leaver = fc.constantFrom(...leavers);
const asKey = fc.boolean();
const minutes = fc.constantFrom(10, 30, 60);
const rank = fc.constantFrom(1, 10, 20, 50);

const operations: fc.Arbitrary<Operation> = fc.oneof(
  fc.tuple(member, minutes, asKey).map(([who, length, asKey]) => ({
    name: `suspend ${who} for ${length} as ${asKey ? 'key' : 'operator'}`,
    run: (world: World) => world.change(who, { hold: { kind: 'suspension', ...world.endsIn(length) }, asKey }),
  })),
  fc.tuple(member, rank, minutes).map(([who, newRankId, length]) => ({
    name: `${who} temporarily ${newRankId} for ${length}`,
    run: (world: World) =>
      world.change(who, { newRankId, hold: { kind: 'temporary', ...world.endsIn(length) }, asKey: false }),
  })),
  fc.tuple(member, rank, asKey).map(([who, newRankId, asKey]) => ({
    name: `${who} to ${newRankId} as ${asKey ? 'key' : 'operator'}`,
    run: (world: World) => world.change(who, { newRankId, asKey }),
  })),
  fc.tuple(member, asKey).map(([who, asKey]) => ({
    name: `lift ${who} as ${asKey ? 'key' : 'operator'}`,
    run: (world: World) => world.lift(who, asKey),
  })),
  member.map((who) => ({ name: `extend ${who}`, run: (world: World) => world.extend(who) })),
  minutes.map((length) => ({ name: `pass ${length}`, run: (world: World) => world.pass(length) })),
  fc.constant({ name: 'end what is due', run: (world: World) => world.endDue() }),
  fc.tuple(member, fc.integer({ min: 1, max: 3 })).map(([who, count]) => ({
    name: `undo ${count} of ${who}`,
    run: (world: World) => world.undoNewest(who, count),
  })),
  leaver.map((who) => ({ name: `${who} leaves`, run: (world: World) => world.leave(who) })),
  leaver.map((who) => ({ name: `${who} joins`, run: (world: World) => world.join(who) })),
  fc.constant({ name: 'sweep', run: (world: World) => world.sweep() }),
  member.map((who) => ({ name: `revert ${who} in the group`, run: (world: World) => world.revertInGroup(who) })),
  fc.constant({ name: 'undo the key', run: (world: World) => world.undoKey() }),
  member.map((who) => ({ name: `undo the undo of ${who}`, run: (world: World) => world.undoTheUndo(who) })),
);

test('an undo restores the roles and holds from before the undone changes, except holds whose end has passed', async () => {
  const property = fc.asyncProperty(
    fc.array(operations, { minLength: 10, maxLength: 40, size: 'max' }),
    async (sequence) => {
      using dir = new TempDir();
      const world = await World.open(dir.path);
      try {
        for (const { run } of sequence) await run(world);
      } finally {
        await world.app[Symbol.asyncDispose]();
        await returnStore(dir.path);
      }
    },
  );
  await fc.assert(property, {
    numRuns: 50,
    interruptAfterTimeLimit: 20_000,
    endOnFailure: true,
    reporter: ({ failed, counterexample, errorInstance }) => {
      if (failed)
        throw new Error(`${counterexample?.[0].map(({ name }) => name).join('\n')}`, { cause: errorInstance });
    },
  });
}, 60_000);
