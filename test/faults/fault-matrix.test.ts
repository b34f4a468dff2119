import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { ErrorCode } from '../../src/base/errors.ts';
import type { ChangeState } from '../../src/core/model.ts';
import { codeOf } from '../support/answers.ts';
import type { FakeOpenCloud, Fault, FaultKind } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudApp, openCloudApp, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';

const sideBySide = 28;
vi.setConfig({ maxConcurrency: sideBySide, testTimeout: 60_000 });

/** More than one try may take, less than reads may lag. */
const lateMs = 600;

const { base, trainee, officer } = sampleRoles;
const userId = sampleUsers.trainee;

type Operation = 'introspect' | 'group' | 'roles' | 'publicRoles' | 'memberships' | 'assign' | 'unassign';
type Told = 'applied' | ErrorCode;

interface Flaw extends Pick<Fault, 'delayMs' | 'headers'> {
  kind: FaultKind;
  /** What the platform does by it: says no, asks to wait a little or long, answers in time after all, or tells nothing. */
  means: 'no' | 'wait' | 'wait long' | 'in time' | 'nothing';
}

const flaws: Record<string, Flaw> = {
  '400': { kind: 'status 400', means: 'no' },
  '401': { kind: 'status 401', means: 'no' },
  '403': { kind: 'status 403', means: 'no' },
  '404': { kind: 'status 404', means: 'no' },
  '409': { kind: 'status 409', means: 'nothing' },
  '429': { kind: 'status 429', means: 'wait' },
  '429 with retry-after': { kind: 'status 429', headers: { 'retry-after': '30' }, means: 'wait long' },
  '499': { kind: 'status 499', means: 'nothing' },
  '500': { kind: 'status 500', means: 'nothing' },
  '503': { kind: 'status 503', means: 'nothing' },
  'a page': { kind: 'html', means: 'nothing' },
  'no body': { kind: 'empty', means: 'nothing' },
  'half a body': { kind: 'truncated', means: 'nothing' },
  'a huge body': { kind: 'oversized', means: 'nothing' },
  'a body cut off': { kind: 'cut', means: 'nothing' },
  'a reset': { kind: 'reset', means: 'nothing' },
  'no answer': { kind: 'hang', means: 'nothing' },
  'an answer in time': { kind: 'slow', delayMs: 50, means: 'in time' },
  'an answer too late': { kind: 'slow', delayMs: lateMs, means: 'nothing' },
};

interface Combination {
  operation: Operation;
  name: string;
  flaw: Flaw;
  isPermanent: boolean;
  when: 'before' | 'after';
}

const operations: Operation[] = ['introspect', 'group', 'roles', 'publicRoles', 'memberships', 'assign', 'unassign'];
const combinations = operations.flatMap((operation) =>
  Object.entries(flaws).flatMap(([name, flaw]) =>
    [false, true].flatMap((isPermanent) =>
      positions(operation, flaw).map((when): Combination => ({ operation, name, flaw, isPermanent, when })),
    ),
  ),
);

const idle: OpenCloudApp[] = [];
beforeAll(async () => {
  for (let started = 0; started < sideBySide; started += 1) idle.push(await openCloudApp());
}, 20_000);
afterAll(async () => {
  await Promise.all(idle.map((system) => system[Symbol.asyncDispose]()));
});

test.concurrent.each(combinations)(
  '$operation met with $name, carried out: $when, for good: $isPermanent',
  async (combination) => {
    // Only a daemon that has just started has still to ask which role is the base role.
    const system = combination.operation === 'publicRoles' ? undefined : idle.pop();
    if (system === undefined) {
      const prepare = (fake: FakeOpenCloud) => {
        fake.hasPublicRoles = false;
      };
      await using fresh = await openCloudApp({ prepare });
      fresh.fake.hasPublicRoles = true;
      await meet(fresh, combination);
    } else {
      await meet(system, combination);
      if (combination.flaw.kind === 'slow') await system.clock.sleep(lateMs);
      await system.passHour(); // so that the hourly look at the credential never meets a fault meant for a change
      idle.push(system);
    }
  },
);

async function meet(system: OpenCloudApp, combination: Combination): Promise<void> {
  const { fake, clock } = system;
  const { operation, flaw, isPermanent, when } = combination;
  fake.group.setMember(userId, [trainee]);
  fake.expectNeverWithoutRole(userId);
  clock.skip(61_000); // what is remembered of the group is read anew
  const writesBefore = fake.journal.writes().length;
  fake.faults.add({ operation, ...flaw, when, times: isPermanent ? Number.POSITIVE_INFINITY : 1 });

  const answer = await system.rank(userId);
  const heldThen = fake.group.held(userId);
  const told: Told = answer.status === 200 ? 'applied' : (codeOf(answer) as ErrorCode);
  expect(expectedAnswers(combination), answer.text).toContain(told);
  if (told === 'applied') expect(heldThen).toEqual([officer]);
  expect(fake.journal.writes().length - writesBefore).toBeLessThanOrEqual(maxWrites(combination));
  const change = await system.changeOf(answer);
  expect(change.state).toBe(stateOf(told));
  if (change.state === 'refused' || change.state === 'failed') {
    expect(change.code).toBe(told);
    expect(heldThen).toEqual([trainee]);
  }

  fake.faults.clear();
  await settled(system);
  const { state, rolesBefore, rolesAfter } = await system.changeOf(answer);
  const held = fake.group.held(userId) ?? [];
  expect(told === 'outcome_unknown' ? expectedEnds(combination) : [change.state]).toContain(state);
  expect(held).toEqual(state === 'applied' ? [officer] : [trainee]);
  expect(rolesAfter).toEqual(rolesBefore.length === 0 ? [] : [base, ...held].sort((a, b) => a - b));
  expect(fake.violations()).toEqual([]);
}

/** A refusal is the platform's word that it did nothing; and whether a read was carried out makes no difference. */
function positions(operation: Operation, { means }: Flaw): Array<'before' | 'after'> {
  const isWrite = operation === 'assign' || operation === 'unassign';
  return isWrite && (means === 'nothing' || means === 'in time') ? ['before', 'after'] : ['before'];
}

/** What may be said: one thing, but for a write that was carried out and not answered. Then a read may still be in time. */
function expectedAnswers(combination: Combination): Told[] {
  const { operation, name, flaw, isPermanent, when } = combination;
  const { means } = flaw;
  const isWrite = operation === 'assign' || operation === 'unassign';
  const isCredential = name === '401' || name === '403';
  if (means === 'in time' || operation === 'publicRoles') return ['applied'];
  if (operation === 'introspect' || operation === 'group') return [isCredential ? 'platform_credential' : 'applied'];
  if (!isPermanent && (means === 'nothing' || means === 'wait')) return ['applied'];
  if (isWrite && means === 'nothing') {
    return when === 'after' || flaw.kind === 'slow' ? ['applied', 'outcome_unknown'] : ['outcome_unknown'];
  }
  if (operation === 'unassign') {
    // What was given has to be taken again, by the same operation.
    return [isPermanent || means === 'wait long' ? 'outcome_unknown' : refusalOfWrite(name)];
  }
  if (means === 'wait long') return ['platform_busy'];
  if (means === 'wait') return ['platform_busy', isWrite ? 'outcome_unknown' : 'platform_unavailable']; // its last try can be cut off by the deadline
  if (means === 'nothing') return ['platform_unavailable'];
  return [isWrite ? refusalOfWrite(name) : isCredential ? 'platform_credential' : 'platform_rejected'];
}

function refusalOfWrite(name: string): Told {
  if (name === '401') return 'platform_credential';
  if (name === '403') return 'above_acting_account';
  return name === '404' ? 'member_not_found' : 'platform_rejected';
}

function stateOf(told: Told): ChangeState {
  if (told === 'applied') return 'applied';
  if (told === 'outcome_unknown') return 'unknown';
  return told === 'above_acting_account' || told === 'member_not_found' ? 'refused' : 'failed';
}

/**
 * How the history may have an unknown outcome in the end. The last try is cut off by the deadline: it can still arrive once
 * the fault is gone, and then the change is carried to its end.
 */
function expectedEnds({ operation, name, flaw }: Combination): ChangeState[] {
  if (flaw.means === 'no') return [stateOf(refusalOfWrite(name))];
  if (flaw.means === 'nothing' && operation === 'unassign') return ['applied'];
  return ['applied', 'failed'];
}

function maxWrites({ operation, flaw: { means }, isPermanent }: Combination): number {
  const isWrite = operation === 'assign' || operation === 'unassign';
  if (isWrite && isPermanent && (means === 'nothing' || means === 'wait')) return 100;
  return 4;
}

/** Closed gates and the credential's breaker let calls through again; then recovery has its rounds. */
async function settled({ app, clock, call, recover }: OpenCloudApp): Promise<void> {
  clock.skip(61_000);
  if (app.deadCredential() !== undefined) await app.platform.group(call());
  for (let round = 0; round < 5; round += 1) {
    if ((await app.store.openChanges()).length === 0) return;
    await recover();
  }
  expect(await app.store.openChanges()).toEqual([]);
}
