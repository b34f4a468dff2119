import { afterAll, expect, test, vi } from 'vitest';
import { defaultTuning } from '../../src/platforms/upstream/client.ts';
import { codeOf } from '../support/answers.ts';
import type { Fault } from '../support/fake-open-cloud/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type OpenCloudApp, openCloudAppOn, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';
import { type Answer, send } from '../support/open-test-app.ts';

const maxConcurrency = 8;
vi.setConfig({ maxConcurrency });

/**
 * Each row is the outcome of a change from Trainee to Officer during a fault, or (`add`, `remove`) of a change that
 * only gives or takes Officer: the response, the record in the history (with its code if that differs from the
 * response's), the member's roles except the base role, and the number of writes. An arrow leads to the state ten
 * seconds after Roblox has recovered; cells without an arrow do not change. `carried out` is `yes` if Roblox carried
 * out the write despite the fault, and always `no` for reads and for 429.
 */
const table = `
  asked for   | fault               | lasts          | carried out | answer                   | history                                                     | roles                     | writes
  introspect  | 401                 | once, for good | no          | 502 platform_credential  | failed                                                      | trainee                   | 0
  introspect  | 400, 403, 404       | once, for good | no          | 200                      | applied                                                     | officer                   | 2
  introspect  | 429, 429+           | once, for good | no          | 200                      | applied                                                     | officer                   | 2
  introspect  | unusable, silent    | once, for good | no          | 200                      | applied                                                     | officer                   | 2
  introspect  | slow                | once, for good | no          | 200                      | applied                                                     | officer                   | 2

  group       | 401                 | once, for good | no          | 502 platform_credential  | failed                                                      | trainee                   | 0
  group       | 400, 403, 404       | once, for good | no          | 200                      | applied                                                     | officer                   | 2
  group       | 429, 429+           | once, for good | no          | 200                      | applied                                                     | officer                   | 2
  group       | unusable, silent    | once, for good | no          | 200                      | applied                                                     | officer                   | 2
  group       | slow                | once, for good | no          | 200                      | applied                                                     | officer                   | 2

  publicRoles | 400, 401, 403, 404  | once, for good | no          | 200                      | applied                                                     | officer                   | 2
  publicRoles | 429, 429+           | once, for good | no          | 200                      | applied                                                     | officer                   | 2
  publicRoles | unusable, silent    | once, for good | no          | 200                      | applied                                                     | officer                   | 2
  publicRoles | slow                | once, for good | no          | 200                      | applied                                                     | officer                   | 2

  roles       | 401, 403            | once, for good | no          | 502 platform_credential  | failed                                                      | trainee                   | 0
  roles       | 400, 404            | once, for good | no          | 502 platform_rejected    | failed                                                      | trainee                   | 0
  roles       | 429                 | once           | no          | 200                      | applied                                                     | officer                   | 2
  roles       | 429                 | for good       | no          | 503 platform_busy        | failed                                                      | trainee                   | 0
  roles       | 429+                | once, for good | no          | 503 platform_busy        | failed                                                      | trainee                   | 0
  roles       | unusable, silent    | once           | no          | 200                      | applied                                                     | officer                   | 2
  roles       | unusable, silent    | for good       | no          | 503 platform_unavailable | failed                                                      | trainee                   | 0
  roles       | slow                | once, for good | no          | 200                      | applied                                                     | officer                   | 2

  role        | 401, 403            | once, for good | no          | 502 platform_credential  | failed                                                      | trainee                   | 0
  role        | 400, 404            | once, for good | no          | 200                      | applied                                                     | officer                   | 2
  role        | 429                 | once           | no          | 200                      | applied                                                     | officer                   | 2
  role        | 429                 | for good       | no          | 503 platform_busy        | failed                                                      | trainee                   | 0
  role        | 429+                | once, for good | no          | 503 platform_busy        | failed                                                      | trainee                   | 0
  role        | unusable, silent    | once           | no          | 200                      | applied                                                     | officer                   | 2
  role        | unusable, silent    | for good       | no          | 503 platform_unavailable | failed                                                      | trainee                   | 0
  role        | slow                | once, for good | no          | 200                      | applied                                                     | officer                   | 2

  actor       | 401, 403            | once, for good | no          | 502 platform_credential  | failed                                                      | trainee                   | 0
  actor       | 400, 404            | once, for good | no          | 502 platform_rejected    | failed                                                      | trainee                   | 0
  actor       | 429                 | once           | no          | 200                      | applied                                                     | officer                   | 2
  actor       | 429                 | for good       | no          | 503 platform_busy        | failed                                                      | trainee                   | 0
  actor       | 429+                | once, for good | no          | 503 platform_busy        | failed                                                      | trainee                   | 0
  actor       | unusable, silent    | once           | no          | 200                      | applied                                                     | officer                   | 2
  actor       | unusable, silent    | for good       | no          | 503 platform_unavailable | failed                                                      | trainee                   | 0
  actor       | slow                | once, for good | no          | 200                      | applied                                                     | officer                   | 2

  member      | 401, 403            | once, for good | no          | 502 platform_credential  | failed                                                      | trainee                   | 0
  member      | 400, 404            | once, for good | no          | 502 platform_rejected    | failed                                                      | trainee                   | 0
  member      | 429                 | once           | no          | 200                      | applied                                                     | officer                   | 2
  member      | 429                 | for good       | no          | 503 platform_busy        | failed                                                      | trainee                   | 0
  member      | 429+                | once, for good | no          | 503 platform_busy        | failed                                                      | trainee                   | 0
  member      | unusable, silent    | once           | no          | 200                      | applied                                                     | officer                   | 2
  member      | unusable, silent    | for good       | no          | 503 platform_unavailable | failed                                                      | trainee                   | 0
  member      | slow                | once, for good | no          | 200                      | applied                                                     | officer                   | 2

  assign      | 400                 | once, for good | no          | 502 platform_rejected    | failed                                                      | trainee                   | 1
  assign      | 401                 | once, for good | no          | 502 platform_credential  | failed                                                      | trainee                   | 1
  assign      | 403                 | once, for good | no          | 403 above_acting_account | refused                                                     | trainee                   | 1
  assign      | 404                 | once, for good | no          | 502 platform_rejected    | failed                                                      | trainee                   | 1
  assign      | 400, 401, 403, 404  | once, for good | yes         | 200                      | applied                                                     | officer                   | 2
  assign      | 429                 | once           | no          | 200                      | applied                                                     | officer                   | 3
  assign      | 429                 | for good       | no          | 503 platform_busy        | failed                                                      | trainee                   | 5
  assign      | 429+                | once, for good | no          | 503 platform_busy        | failed                                                      | trainee                   | 1
  assign      | broken, silent      | once           | no, yes     | 200                      | applied                                                     | officer                   | 3
  assign      | broken              | for good       | no          | 504 outcome_unknown      | unknown → failed platform_unavailable                       | trainee                   | 6
  assign      | broken              | for good       | yes         | 504 outcome_unknown      | unknown → applied                                           | officer+trainee → officer | 6 → 7
  assign      | unreadable          | once, for good | no          | 504 outcome_unknown      | unknown → failed platform_unavailable                       | trainee                   | 1
  assign      | unreadable          | once, for good | yes         | 200                      | applied                                                     | officer                   | 2
  assign      | hang                | for good       | no          | 504 outcome_unknown      | unknown → failed platform_unavailable                       | trainee                   | 3
  assign      | hang                | for good       | yes         | 504 outcome_unknown      | unknown → applied                                           | officer+trainee → officer | 3 → 4
  assign      | late                | for good       | no, yes     | 504 outcome_unknown      | unknown → applied                                           | officer+trainee → officer | 3 → 4
  assign      | slow                | once, for good | no, yes     | 200                      | applied                                                     | officer                   | 2

  unassign    | 400, 401, 403, 404  | once           | no, yes     | 200                      | applied                                                     | officer                   | 3
  unassign    | 400, 401, 403, 404  | for good       | yes         | 200                      | applied                                                     | officer                   | 3
  unassign    | 400, 404            | for good       | no          | 504 outcome_unknown      | unknown platform_rejected → failed platform_rejected        | officer+trainee → trainee | 5
  unassign    | 401                 | for good       | no          | 504 outcome_unknown      | unknown platform_credential → failed platform_credential    | officer+trainee → trainee | 5
  unassign    | 403                 | for good       | no          | 504 outcome_unknown      | unknown above_acting_account → refused above_acting_account | officer+trainee → trainee | 5
  unassign    | 429                 | once           | no          | 200                      | applied                                                     | officer                   | 3
  unassign    | 429                 | for good       | no          | 504 outcome_unknown      | unknown → applied                                           | officer+trainee → officer | 6 → 7
  unassign    | 429+                | once, for good | no          | 504 outcome_unknown      | unknown platform_busy → failed platform_busy                | officer+trainee → trainee | 3 → 4
  unassign    | broken, silent      | once           | no, yes     | 200                      | applied                                                     | officer                   | 3
  unassign    | broken              | for good       | no          | 504 outcome_unknown      | unknown → applied                                           | officer+trainee → officer | 6 → 7
  unassign    | broken              | for good       | yes         | 504 outcome_unknown      | unknown → applied                                           | officer                   | 6
  unassign    | unreadable          | once, for good | no          | 504 outcome_unknown      | unknown → applied                                           | officer+trainee → officer | 2 → 3
  unassign    | unreadable          | once, for good | yes         | 200                      | applied                                                     | officer                   | 2
  unassign    | hang                | for good       | no          | 504 outcome_unknown      | unknown → applied                                           | officer+trainee → officer | 3 → 4
  unassign    | hang                | for good       | yes         | 504 outcome_unknown      | unknown → applied                                           | officer                   | 3
  unassign    | late                | for good       | no, yes     | 504 outcome_unknown      | unknown → applied                                           | officer                   | 3
  unassign    | slow                | once, for good | no, yes     | 200                      | applied                                                     | officer                   | 2

  add         | 400                 | once, for good | no          | 502 platform_rejected    | failed                                                      | trainee                   | 1
  add         | 403                 | once, for good | no          | 403 above_acting_account | refused                                                     | trainee                   | 1
  add         | 400, 403            | once, for good | yes         | 200                      | applied                                                     | officer+trainee           | 1
  add         | 429                 | once           | no          | 200                      | applied                                                     | officer+trainee           | 2
  add         | 429                 | for good       | no          | 503 platform_busy        | failed                                                      | trainee                   | 6
  add         | 500, hang           | once           | no, yes     | 200                      | applied                                                     | officer+trainee           | 2
  add         | 500                 | for good       | no          | 504 outcome_unknown      | unknown → failed platform_unavailable                       | trainee                   | 7
  add         | 500                 | for good       | yes         | 504 outcome_unknown      | unknown → applied                                           | officer+trainee           | 7
  add         | cut                 | once, for good | no          | 504 outcome_unknown      | unknown → failed platform_unavailable                       | trainee                   | 1
  add         | cut                 | once, for good | yes         | 200                      | applied                                                     | officer+trainee           | 1
  add         | hang                | for good       | no          | 504 outcome_unknown      | unknown → failed platform_unavailable                       | trainee                   | 3
  add         | hang                | for good       | yes         | 504 outcome_unknown      | unknown → applied                                           | officer+trainee           | 3

  remove      | 400                 | once, for good | no          | 502 platform_rejected    | failed                                                      | officer+trainee           | 1
  remove      | 403                 | once, for good | no          | 403 above_acting_account | refused                                                     | officer+trainee           | 1
  remove      | 400, 403            | once, for good | yes         | 200                      | applied                                                     | trainee                   | 1
  remove      | 429                 | once           | no          | 200                      | applied                                                     | trainee                   | 2
  remove      | 429                 | for good       | no          | 503 platform_busy        | failed                                                      | officer+trainee           | 6
  remove      | 500, hang           | once           | no, yes     | 200                      | applied                                                     | trainee                   | 2
  remove      | 500                 | for good       | no          | 504 outcome_unknown      | unknown → failed platform_unavailable                       | officer+trainee           | 7
  remove      | 500                 | for good       | yes         | 504 outcome_unknown      | unknown → applied                                           | trainee                   | 7
  remove      | cut                 | once, for good | no          | 504 outcome_unknown      | unknown → failed platform_unavailable                       | officer+trainee           | 1
  remove      | cut                 | once, for good | yes         | 200                      | applied                                                     | trainee                   | 1
  remove      | hang                | for good       | no          | 504 outcome_unknown      | unknown → failed platform_unavailable                       | officer+trainee           | 3
  remove      | hang                | for good       | yes         | 504 outcome_unknown      | unknown → applied                                           | trainee                   | 3
`;

/**
 * The requests that a change can make to Roblox. `actor` and `member` read the roles of the acting account and of the
 * member. `add` and `remove` are the only writes of a change that gives or takes Officer as an extra role.
 */
const requests = {
  introspect: { operation: 'introspect' },
  group: { operation: 'group' },
  roles: { operation: 'roles' },
  role: { operation: 'role' },
  publicRoles: { operation: 'publicRoles' },
  actor: { operation: 'memberships', userId: sampleUsers.actor },
  member: { operation: 'memberships', userId: sampleUsers.trainee },
  assign: { operation: 'assign' },
  unassign: { operation: 'unassign' },
  add: { operation: 'assign' },
  remove: { operation: 'unassign' },
} as const;

const faults = {
  '400': { kind: 'status 400' },
  '401': { kind: 'status 401' },
  '403': { kind: 'status 403' },
  '404': { kind: 'status 404' },
  '409': { kind: 'status 409' },
  '429': { kind: 'status 429' },
  '429+': { kind: 'status 429', headers: { 'retry-after': '30' } }, // longer than a change may take
  '499': { kind: 'status 499' },
  '500': { kind: 'status 500' },
  '503': { kind: 'status 503' },
  page: { kind: 'html' },
  empty: { kind: 'empty' },
  half: { kind: 'truncated' },
  huge: { kind: 'oversized' },
  cut: { kind: 'cut' },
  reset: { kind: 'reset' },
  hang: { kind: 'hang' },
  late: { kind: 'slow', delayMs: 6_000 }, // longer than an attempt may take
  slow: { kind: 'slow', delayMs: 1_000 },
} as const satisfies Record<string, Omit<Fault, 'operation'>>;

const faultGroups: Record<string, string> = {
  unusable: '409, 499, 500, 503, page, empty, half, huge, cut, reset',
  broken: '409, 499, 500, 503, reset',
  unreadable: 'page, empty, half, huge, cut', // with status 200
  silent: 'hang, late',
};

interface Cell {
  request: keyof typeof requests;
  fault: keyof typeof faults;
  lasts: 'once' | 'for good';
  carriedOut: 'no' | 'yes';
  /** The table's last four columns. */
  expected: string[];
}

const cells = table
  .split('\n')
  .slice(2)
  .filter((line) => line.trim() !== '')
  .flatMap((line) => {
    const [request, some = '', lasts, carriedOut, ...expected] = line.split('|').map((cell) => cell.trim());
    const each = listed(some).flatMap((name) => listed(faultGroups[name] ?? name));
    return each.flatMap((fault) =>
      listed(lasts).flatMap((times) =>
        listed(carriedOut).map((is) => ({ request, fault, lasts: times, carriedOut: is, expected }) as Cell),
      ),
    );
  });

function listed(names = ''): string[] {
  return names.split(', ');
}

/** One fault of each kind. Changes to extra roles make the same reads as other changes, so these are enough. */
const faultsOfRoles = listed('400, 403, 429, 500, cut, hang');

test('the table contains every combination of request and fault exactly once', () => {
  const isWrite = (request: string) => ['assign', 'unassign', 'add', 'remove'].includes(request);
  const isRateLimit = (fault: string) => listed('429, 429+').includes(fault);
  const isAlongside = (request: string) => request === 'add' || request === 'remove';
  const all = Object.keys(requests).flatMap((request) =>
    (isAlongside(request) ? faultsOfRoles : Object.keys(faults)).flatMap((fault) =>
      (isWrite(request) && !isRateLimit(fault) ? ['no', 'yes'] : ['no']).flatMap((carriedOut) =>
        ['once', 'for good'].map((lasts) => `${request} ${fault} ${lasts} ${carriedOut}`),
      ),
    ),
  );
  const inTable = cells.map(({ request, fault, lasts, carriedOut }) => `${request} ${fault} ${lasts} ${carriedOut}`);
  expect(inTable.toSorted()).toEqual(all.toSorted());
});

/** The latency of every response. Ten sequential requests just fit into a change's deadline. */
const answerMs = 1_995;
const deadlineMs = 20_000;
/** Longer than the group's data is cached. */
const longMs = 301_000;
/** The daemon finishes its background work within this time. */
const quietMs = 9_000;
/** Once Roblox has recovered, an unknown outcome is reconciled within this time. */
const reconciledWithinMs = 10_000;

const userId = sampleUsers.trainee;
const { trainee, officer } = sampleRoles;
const roleNames = new Map(Object.entries(sampleRoles).map(([name, id]) => [id, name]));

test.concurrent.each(cells)(
  '$request meets $fault, $lasts, carried out: $carriedOut',
  async ({ request, fault, lasts, carriedOut, expected }) => {
    const isAlongside = request === 'add' || request === 'remove';
    const systems = isAlongside ? idle.alongside : idle.ranking;
    // A lasting fault needs a new daemon, because retries depend on previous responses. A fault of public roles needs
    // one, because a daemon does not read them again once it has found the base role.
    const isFresh = lasts === 'for good' || request === 'publicRoles';
    const reused = isFresh ? undefined : systems.pop();
    const system = reused ?? (await openSystem({ isAlongside, hasPublicRoles: request !== 'publicRoles' }));
    await using closing = new AsyncDisposableStack();
    closing.use(system);
    const { fake, clock } = system;
    fake.latencyMs = answerMs;
    fake.group.setMember(userId, request === 'remove' ? [officer, trainee] : [trainee]);
    await clock.skip(longMs - quietMs);
    await clock.advance(quietMs);
    if (request === 'role') {
      // Reads the roles so early that the change must confirm its role with a separate read.
      const call = { ...system.call(), deadlineAt: clock.monotonic() + deadlineMs };
      await clock.passUntil(system.app.group.acting(call));
      await clock.advance(quietMs / 2);
    }
    const writesBefore = fake.journal.writes().length;
    const usedBefore = fake.faults.usedCount;
    const [when, times] = [carriedOut === 'yes' ? 'after' : 'before', lasts === 'once' ? 1 : 1_000] as const;
    const injected: Fault = { ...requests[request], ...faults[fault], when, times };
    fake.faults.add(injected);

    const asked = isAlongside ? changeRole(system, request) : system.rank(userId);
    const answer = await clock.passUntil(asked);
    const atFirst = await columnsOf(system, answer, writesBefore);
    expect(fake.faults.usedCount).toBeGreaterThan(usedBefore);
    fake.faults.clear();
    fake.latencyMs = 0;
    await clock.skip(Number(injected.headers?.['retry-after'] ?? 0) * 1_000);
    await clock.advance(reconciledWithinMs);
    const atLast = await columnsOf(system, answer, writesBefore);

    const columns = atFirst.map((first, column) => (first === atLast[column] ? first : `${first} → ${atLast[column]}`));
    expect([[answer.status, codeOf(answer)].join(' ').trim(), ...columns]).toEqual(expected);
    expect(fake.violations()).toEqual([]);
    if (systems.length === maxConcurrency) return;
    closing.move();
    systems.push(system);
  },
);

/** Daemons that have recovered and can test another cell. Starting a daemon takes as long as testing a cell. */
const idle: Record<'ranking' | 'alongside', OpenCloudApp<ManualClock>[]> = { ranking: [], alongside: [] };
afterAll(async () => {
  for (const system of Object.values(idle).flat()) await system[Symbol.asyncDispose]();
});

interface Opening {
  isAlongside: boolean;
  hasPublicRoles: boolean;
}

async function openSystem({ isAlongside, hasPublicRoles }: Opening): Promise<OpenCloudApp<ManualClock>> {
  const clock = new ManualClock();
  const opening = openCloudAppOn(clock, {
    ...(isAlongside && { ladder: [10], scopes: ['rank', 'roles'] }),
    ...{ fake: { latencyMs: answerMs }, deadlineMs, readLagMs: 8_000 },
    tuning: { ...defaultTuning, backOffMs: 0, publicRolesTimeoutMs: 4_000 },
    prepare: (fake) => void Object.assign(fake, { hasPublicRoles }),
  });
  const system = await clock.passUntil(opening);
  system.fake.hasPublicRoles = true;
  system.fake.expectNeverWithoutRole(userId);
  return system;
}

function changeRole({ url, secret: key }: OpenCloudApp<ManualClock>, operation: 'add' | 'remove'): Promise<Answer> {
  const body = { robloxUserId: userId, role: sampleRoles.officer };
  return send(`${url}/v2/roles/${operation}?placeid=1`, { method: 'POST', key, body });
}

/**
 * Returns the columns that follow the response. Unless the outcome is unknown or rankd never read the member, the
 * roles in the history must match Roblox.
 */
async function columnsOf(system: OpenCloudApp<ManualClock>, answer: Answer, writesBefore: number): Promise<string[]> {
  const { group, journal } = system.fake;
  const { state, code, rolesBefore, rolesAfter } = await system.changeOf(answer);
  const held = group.held(userId) ?? [];
  if (state !== 'unknown' && rolesBefore.length > 0) {
    expect(rolesAfter).toEqual([sampleRoles.base, ...held].sort((a, b) => a - b));
  }
  return [
    code === null || code === codeOf(answer) ? state : `${state} ${code}`,
    held.map((id) => roleNames.get(id)).join('+'),
    String(journal.writes().length - writesBefore),
  ];
}
