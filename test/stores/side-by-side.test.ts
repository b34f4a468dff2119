import fc from 'fast-check';
import { expect, test } from 'vitest';
import { judgeErasure, judgeForgetting } from '../../src/core/forgetting.ts';
import { changeStates } from '../../src/core/model.ts';
import type { ChangeFilter, Store } from '../../src/ports/index.ts';
import { engineOf } from '../../src/stores/engine.ts';
import {
  applied,
  awkwardText,
  begin,
  finish,
  newChange,
  newDemotion,
  newKey,
  newSecret,
  operate,
  operator,
  record,
  refused,
  unknown,
} from '../contracts/store/samples.ts';
import { freshDataDir } from '../support/fresh-data-dir.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createPostgresDatabase } from '../support/postgres-database.ts';

/** A store with its clock, and the ids of the changes recorded so far. */
interface Side {
  store: Store;
  clock: ManualClock;
  changes: string[];
}

const pick = <T>(...from: T[]) => fc.constantFrom(...from);
const group = 'the simulated group';
const member = fc.integer({ min: 1, max: 4 });
const time = fc.integer({ min: 0, max: 12 }).map((n) => n * 1_000);
const name = pick('', 'Ann', 'ann_1', 'ANN_2', 'annX1', 'Bob');
const beginning = pick('ann', 'ANN_', 'ann_1', 'b', 'x_');
const keyName = pick('a', 'b', 'B');
const key = keyName.map((one) => `key_${one}`);
const optionally = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });

const changed = fc.record({
  ...{ rankeeId: member, rankeeName: name, rankerId: fc.integer({ min: 0, max: 2 }), placeId: pick(41, 42) },
  ...{ keyId: key, requestedAt: time, demotion: fc.boolean(), dryRun: fc.boolean(), privileged: fc.boolean() },
  ...{ rolesAfter: pick([100, 200], [100, 300]), topRank: pick(10, 20), reason: optionally(fc.constant(awkwardText)) },
  ...{ undoId: optionally(fc.constant('undo_x')), finishedAt: optionally(time) },
});

/** Sets at most two conditions, because more would match almost nothing. */
const filter: fc.Arbitrary<ChangeFilter> = fc
  .record({
    all: fc.record({
      ...{ rankeeId: member, rankeeName: beginning, rankerId: fc.integer({ min: 0, max: 2 }), keyId: key },
      ...{ placeId: pick(41, 42), by: pick('key', 'cli', operator, 'key:key_a'), undoId: fc.constant('undo_x') },
      ...{ states: fc.subarray([...changeStates]), since: time, until: time, group: pick(group, 'another') },
    }),
    asked: fc.uniqueArray(fc.nat(10), { maxLength: 2 }),
    limit: pick(1, 2, 5, 100),
  })
  .map(({ all, asked, limit }) => ({
    ...Object.fromEntries(Object.entries(all).filter((_, index) => asked.includes(index))),
    limit,
  }));

/** A read or write on one side. The test compares its result with that of the other side. */
type Step = (side: Side) => Promise<unknown>;

function step<T>(arbitrary: fc.Arbitrary<T>, does: (side: Side, value: T) => Promise<unknown>): fc.Arbitrary<Step> {
  return arbitrary.map((value) =>
    Object.assign((side: Side) => does(side, value), {
      toString: () => `${does.toString().replaceAll(/\s+/g, ' ')} of ${JSON.stringify(value)}`,
    }),
  );
}

function idOf({ changes }: Side, back: number): string {
  return changes[Math.max(0, changes.length - 1 - back)] ?? 'chg_none';
}

const newest = fc.integer({ min: 0, max: 3 });

const recorded = step(fc.tuple(changed, pick('applied', 'refused', 'failed')), async (side, [change, state]) => {
  const by = `key:${change.keyId}`;
  await record(side.store, newChange({ ...defined(change), id: nextId(side), state: state as 'applied', by }));
});

const writes = fc.oneof(
  recorded,
  step(changed, async (side, change) => {
    const make = change.demotion ? newDemotion(change.rankeeId, defined(change)) : newChange(defined(change));
    const { latestId } = await side.store.latestChange(change.rankeeId);
    return begin(side.store, { ...make, id: nextId(side), dryRun: false }, { after: latestId });
  }),
  step(fc.tuple(newest, pick(applied, refused, unknown)), (side, [back, outcome]) =>
    finish(side, idOf(side, back), outcome),
  ),
  step(newest, (side, back) => side.store.release(idOf(side, back))),
  step(newest, (side, back) => side.store.takeOver(idOf(side, back))),
  step(keyName, (side, one) => operate(side).createKey(newKey(one), operator)),
  step(fc.tuple(key, pick('x', 'y', 'z')), (side, [keyId, text]) =>
    operate(side).rotateKey({ keyId, secret: newSecret(text), oldExpiresAt: side.clock.now() + 2_000 }, operator),
  ),
  step(fc.tuple(key, fc.boolean()), (side, [keyId, paused]) =>
    operate(side).pauseKey({ keyId, paused, reason: awkwardText }, operator),
  ),
  step(key, (side, keyId) => operate(side).revokeKey(keyId, operator)),
  step(fc.tuple(key, fc.uniqueArray(pick(41, 42, 43))), (side, [keyId, placeIds]) =>
    operate(side).addEntries({ keyId, placeIds, note: awkwardText }, operator),
  ),
  step(fc.tuple(key, fc.uniqueArray(pick(41, 42, 43))), (side, [keyId, placeIds]) =>
    operate(side).removeEntries({ keyId, placeIds }, operator),
  ),
  step(fc.boolean(), async (side, active) => {
    const { createdAt: _, ...workspace } = await operate(side).updateWorkspace({ active }, operator);
    return workspace;
  }),
  step(fc.tuple(member, optionally(name)), (side, [id, one]) =>
    side.store.storeUserName({ id, name: one, at: side.clock.now() }, { since: 0 }),
  ),
  step(fc.tuple(member, pick('a', 'b', 'c')), (side, [userId, id]) => {
    const request = { id, userId, requestedAt: 5, receivedAt: side.clock.now() };
    return side.store.recordErasure(
      request,
      judgeErasure(request, { by: operator, at: side.clock.now(), pseudonym: -userId }),
    );
  }),
  step(fc.constant(undefined), ({ store }) => store.waitingErasures()),
  step(member, (side, userId) => {
    const forgetting = { userId, pseudonym: -userId };
    return side.store.forgetPerson(forgetting, judgeForgetting(forgetting, { by: operator, at: side.clock.now() }));
  }),
  step(fc.tuple(time, pick(1, 3, 100)), (side, [before, limit]) => side.store.pruneChanges({ before, limit })),
  step(fc.integer({ min: -3_000, max: 9_000 }), async ({ clock }, ms) => clock.setWallClock(clock.now() + ms)),
);

const searches = step(filter, ({ store }, asked) => allPages((cursor) => store.searchChanges({ ...asked, cursor })));

const reads = fc.oneof(
  { arbitrary: searches, weight: 6 },
  step(filter, ({ store }, asked) => allPages((cursor) => store.pageChanges({ ...asked, cursor }))),
  step(filter, ({ store }, asked) => store.listChanges(asked)),
  step(fc.tuple(time, time), async ({ store }, [since, until]) =>
    (await store.tallyChanges({ group, since, until }))
      .map((one) => JSON.stringify(one, Object.keys(one).sort()))
      .sort(),
  ),
  step(time, ({ store }, since) => store.countChanges(since)),
  step(member, ({ store }, id) =>
    Promise.all([store.latestChange(id), store.lastAppliedAt(id), store.lastWritten(id)]),
  ),
  step(member, ({ store }, id) => Promise.all([store.lastRankedOthersAt(id), store.mentionsOf(id)])),
  step(fc.constant(undefined), ({ store }) => store.openChanges()),
  step(fc.constant(undefined), ({ store }) => Promise.all([store.listKeys(), store.listEntries({})])),
  step(pick('a', 'key_b', 'B'), ({ store }, one) => store.findKey(one)),
  step(fc.tuple(pick('a', 'x', 'y'), pick(41, 42)), async ({ store }, [text, placeId]) => {
    await store.freshen();
    const found = await store.lookUpKey({ hash: newSecret(text).hash, placeId });
    // Omits `secretId`, because PostgreSQL's sequence can have gaps.
    const { workspace, key: itsKey, retiring, entry } = found ?? {};
    return { active: workspace?.active, key: itsKey, retiring, entry };
  }),
  step(
    fc.record({ keyId: optionally(key), by: optionally(pick('cli', operator)), oldestFirst: fc.boolean() }),
    ({ store }, asked) => store.listAudit({ ...asked, limit: 20 }),
  ),
  step(name, ({ store }, one) => store.usersNamed(one, { limit: 2 })),
  step(fc.constant(undefined), ({ store }) => store.unnamedMembers({ since: 0, limit: 10 }).then((ids) => ids.sort())),
);

const history = fc
  .tuple(
    fc.array(recorded, { minLength: 8, maxLength: 16 }),
    fc.array(fc.oneof({ arbitrary: writes, weight: 2 }, reads), { minLength: 20, maxLength: 40 }),
    fc.array(reads, { minLength: 20, maxLength: 20 }),
  )
  .map((parts) => parts.flat());

test('after any writes, both engines return the same results in the same order', async () => {
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      await using sqlite = await open('sqlite');
      await using postgres = await open('postgres');
      for (const [index, one] of steps.entries()) {
        const [here, there] = await Promise.all([answerOf(one, sqlite.side), answerOf(one, postgres.side)]);
        expect(there, `step ${index}: ${one}`).toEqual(here);
      }
    }),
    { numRuns: 15, endOnFailure: true },
  );
});

async function open(engine: 'sqlite' | 'postgres') {
  const dir = await freshDataDir();
  const database = engine === 'postgres' ? await createPostgresDatabase() : undefined;
  const clock = new ManualClock(5_000);
  const store = await engineOf({ dataDir: dir.path, clock, server: database?.address }).openStore();
  await store.adoptWorkspaceId('ws_of_both');
  const side: Side = { store, clock, changes: [] };
  return {
    side,
    async [Symbol.asyncDispose]() {
      await store.close();
      await database?.[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

async function answerOf(one: Step, side: Side): Promise<unknown> {
  try {
    const value = await one(side);
    return { value: value && JSON.parse(JSON.stringify(value)) };
  } catch (error) {
    return { code: (error as { code?: string }).code ?? error };
  }
}

async function allPages(page: (cursor?: string) => ReturnType<Store['searchChanges']>) {
  const ids: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const { changes, next } = await page(cursor);
    ids.push(...changes.map(({ id }) => id));
    if (next === undefined) return ids;
    cursor = next;
  }
}

function nextId({ changes }: Side): string {
  changes.push(`chg_${changes.length}`);
  return changes.at(-1) ?? '';
}

function defined<T extends object>(fields: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
