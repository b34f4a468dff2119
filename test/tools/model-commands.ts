import fc from 'fast-check';
import { roleChangeKinds } from '../../src/core/model.ts';
import { type Fault, type FaultKind, sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { alongside, expectedOf } from './model-rules.ts';
import type { Ask, ModelWorld, RecordedAnswer } from './model-world.ts';

/** The model's state: roles in addition to the base role, and the first response for each idempotency key. */
export interface Model {
  held: Map<number, number[]>;
  /**
   * False from a fault or an unpredictable repeat until every change is reconciled, because the model can't predict the
   * responses in between.
   */
  isPredictable: boolean;
  hasLadder: boolean;
  firstAnswers: Map<string, { ask: Ask; answer: RecordedAnswer }>;
}

type Command = fc.AsyncCommand<Model, ModelWorld, false>;

/** Generates sequences of requests by callers and operators, faults and read lags of Roblox, and restarts. */
export const modelCommands = fc.commands<Model, ModelWorld, false>(
  [
    asks().map((ask) => command(`ask ${show(ask)}`, (model, world) => askOne(model, world, ask))),
    asks().map((ask) => command(`ask ${show(ask)}`, (model, world) => askOne(model, world, ask))),
    asks().map((ask) => command(`dry run ${show(ask)}`, (model, world) => dryRun(model, world, ask))),
    asks().map((ask) => command(`operator ${show(ask)}`, (model, world) => askAsOperator(model, world, ask))),
    fc
      .array(asks({ keyless: true }), { minLength: 2, maxLength: 5 })
      .map((all) => command(`together ${all.map(show)}`, (model, world) => askTogether(model, world, all))),
    fc
      .record({
        faults: fc.array(faults(), { minLength: 1, maxLength: 3 }),
        all: fc.array(asks(), { minLength: 1, maxLength: 3 }),
      })
      .map(({ faults, all }) =>
        command(`trouble ${faults.map((one) => JSON.stringify(one))} for ${all.map(show)}`, async (model, world) => {
          for (const fault of faults) world.fake.faults.add(fault);
          await askTogether(model, world, all, { withFaults: true });
        }),
      ),
    fc.constantFrom(0, 2_000, 6_750).map((lagMs) =>
      command(`lag ${lagMs}`, async (_model, { fake }) => {
        fake.lagMs = lagMs;
      }),
    ),
    fc.constant(command('restart', (_model, world) => world.restart())),
    fc.constant(command('reconcile', reconcile)),
  ],
  { maxCommands: 25 },
);

/** Waits for all outcomes, compares the records, and resets the model to the group's roles. */
export async function reconcile(model: Model, world: ModelWorld): Promise<void> {
  expectNone('after reconciling', await world.reconcile());
  model.held = heldIn(world);
  model.isPredictable = true;
}

/** Returns the current roles (ids, without the base role) of each member on the fake. */
export function heldIn({ fake }: ModelWorld): Map<number, number[]> {
  return new Map(fake.group.userIds.map((userId) => [userId, fake.group.held(userId) ?? []]));
}

async function askOne(model: Model, world: ModelWorld, ask: Ask): Promise<void> {
  const { idempotencyKey = '' } = ask;
  const first = model.firstAnswers.get(idempotencyKey);
  const answer = await world.ask(ask);
  if (idempotencyKey !== '' && first === undefined) model.firstAnswers.set(idempotencyKey, { ask, answer });
  if (!model.isPredictable) return;
  if (first !== undefined) return expectRepeat(model, { ask, answer, first });
  expectEffect(model, world, { ask, status: answer.status, text: answer.text });
}

function expectRepeat(
  model: Model,
  { ask, answer, first }: { ask: Ask; answer: RecordedAnswer; first: { ask: Ask; answer: RecordedAnswer } },
): void {
  if (first.answer.status >= 409) {
    model.isPredictable = false; // only the history has the final outcome
    return;
  }
  if (ask.userId !== first.ask.userId || ask.rank !== first.ask.rank || ask.kind !== first.ask.kind) {
    expectNone(show(ask), answer.status === 422 ? [] : [`${answer.status} instead of 422`]);
    return;
  }
  const isSame =
    answer.isReplayed && answer.status === first.answer.status && answer.changeId === first.answer.changeId;
  expectNone(
    show(ask),
    isSame ? [] : [`a repeat was answered with ${answer.status} ${answer.text}, at first ${first.answer.status}`],
  );
}

async function dryRun(model: Model, world: ModelWorld, { userId, rank, kind }: Ask): Promise<void> {
  const { status, text } = await world.ask({ userId, rank, kind }, 'test');
  if (!model.isPredictable) return;
  const expected = expectedOf(model.held.get(userId), { userId, rank, kind }, model.hasLadder).status;
  const problems = status === expected ? [] : [`${status} instead of ${expected}: ${text}`];
  if (status === 200 && !text.includes('Test key, nothing changed')) problems.push(`not told as a dry run: ${text}`);
  expectNone(`dry run of ${show({ userId, rank, kind })}`, [...problems, ...changedSince(model, world)]);
}

async function askAsOperator(model: Model, world: ModelWorld, ask: Ask): Promise<void> {
  const state = await world.askAsOperator(ask);
  if (!model.isPredictable) return;
  const { status } = expectedOf(model.held.get(ask.userId), ask, model.hasLadder);
  const expected = status === 200 ? 'applied' : 'refused';
  expectNone(`operator's ${show(ask)}`, state === expected ? [] : [`${state} instead of ${expected}`]);
  expectEffect(model, world, { ask, status, text: '' });
}

/** Sends concurrent requests. Their results depend on their order, which only the history shows. */
async function askTogether(model: Model, world: ModelWorld, all: Ask[], { withFaults = false } = {}): Promise<void> {
  const answers = await Promise.all(all.map((ask) => world.ask(ask)));
  for (const [index, answer] of answers.entries()) {
    const ask = all[index];
    if (ask?.idempotencyKey !== undefined && !model.firstAnswers.has(ask.idempotencyKey))
      model.firstAnswers.set(ask.idempotencyKey, { ask, answer });
  }
  const isExpected = ({ status }: RecordedAnswer, index: number) =>
    status < 500 || (status === 503 && waitsForReads(world, all, index));
  if (model.isPredictable && !withFaults)
    expectNone('together', answers.every(isExpected) ? [] : answers.map(({ status, text }) => `${status} ${text}`));
  if (withFaults) model.isPredictable = false;
  if (model.isPredictable) await reconcile(model, world);
}

/**
 * True if lagging reads can delay a request beyond its deadline, because it is one of at least three for the same
 * member.
 */
function waitsForReads({ fake }: ModelWorld, all: Ask[], index: number): boolean {
  return fake.lagMs > 0 && all.filter(({ userId }) => userId === all[index]?.userId).length > 2;
}

function expectEffect(
  model: Model,
  world: ModelWorld,
  { ask, status, text }: { ask: Ask; status: number; text: string },
) {
  const expected = expectedOf(model.held.get(ask.userId), ask, model.hasLadder);
  if (expected.held !== undefined) model.held.set(ask.userId, expected.held);
  const problems = status === expected.status ? [] : [`${status} instead of ${expected.status}: ${text}`];
  expectNone(show(ask), [...problems, ...changedSince(model, world)]);
}

function changedSince(model: Model, world: ModelWorld): string[] {
  return [...heldIn(world)].flatMap(([userId, held]) => {
    const expected = model.held.get(userId) ?? [];
    return held.join() === expected.join() ? [] : [`member ${userId} holds ${held} instead of ${expected}`];
  });
}

function expectNone(what: string, problems: string[]): void {
  if (problems.length > 0) throw new Error([`${what}:`, ...problems].join('\n  '));
}

function command(name: string, run: (model: Model, world: ModelWorld) => Promise<void>): Command {
  return { check: () => true, run, toString: () => name };
}

function show({ userId, rank, kind, idempotencyKey }: Ask): string {
  const sign = kind === undefined ? '->' : kind === 'role_added' ? '+' : '-';
  return `${userId}${sign}${rank}${idempotencyKey === undefined ? '' : ` (${idempotencyKey})`}`;
}

function asks({ keyless = false } = {}): fc.Arbitrary<Ask> {
  const { trainee, officer, memberOnly, traineeAndCaptain, ...others } = sampleUsers;
  const member = fc.constantFrom(trainee, officer, memberOnly, traineeAndCaptain);
  const idempotencyKey = keyless ? fc.constant(undefined) : fc.constantFrom(undefined, undefined, 'key 1', 'key 2');
  const rankAsks = fc.record({
    userId: fc.oneof(
      { weight: 5, arbitrary: member },
      { weight: 1, arbitrary: fc.constantFrom(...Object.values(others)) },
    ),
    rank: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom(sampleRoles.base, 1, 10, 20, 50) },
      { weight: 1, arbitrary: fc.constantFrom(0, 77, 200, 255) },
    ),
    idempotencyKey,
  });
  const roleAsks = fc.record({
    userId: fc.oneof(
      { weight: 5, arbitrary: member },
      { weight: 1, arbitrary: fc.constantFrom(...Object.values(others)) },
    ),
    rank: fc.oneof(
      { weight: 5, arbitrary: fc.constant(alongside) },
      { weight: 1, arbitrary: fc.constantFrom(0, 10, 77) },
    ),
    kind: fc.constantFrom(...roleChangeKinds),
    idempotencyKey,
  });
  return fc.oneof({ weight: 3, arbitrary: rankAsks }, { weight: 1, arbitrary: roleAsks });
}

/** Generates faults. Roblox does not carry out writes that it refuses, but other failed writes can have an effect. */
function faults(): fc.Arbitrary<Fault> {
  const write = fc.constantFrom('assign' as const, 'unassign' as const);
  const broken = fc.constantFrom<FaultKind>(
    'status 500',
    'status 503',
    'status 409',
    'html',
    'empty',
    'truncated',
    'cut',
    'reset',
    'hang',
  );
  const refusing = fc.constantFrom<FaultKind>('status 400', 'status 403', 'status 404', 'status 429');
  const when = fc.constantFrom('before' as const, 'after' as const);
  const times = fc.integer({ min: 1, max: 6 });
  const skip = fc.integer({ min: 0, max: 2 });
  return fc.oneof(
    fc.record({ operation: write, kind: broken, when, times, skip }),
    fc.record({ operation: write, kind: refusing, times, skip }),
    fc.record({ operation: fc.constant('memberships' as const), kind: broken, times, skip }),
  );
}
