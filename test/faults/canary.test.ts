import { expect, test, vi } from 'vitest';
import '../../src/metrics/open-metrics.ts'; // loaded now, because a manual clock does not wait for a dynamic import
import { type FakeOpenCloud, sampleRoles } from '../support/fake-open-cloud/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openCloudAppOn } from '../support/open-cloud-app.ts';
import { sampleOf, scrape } from '../support/scrape.ts';

vi.setConfig({ maxConcurrency: 8 });

const dayMs = 86_400_000;

async function daemonOn(change: (roblox: FakeOpenCloud) => unknown = () => undefined) {
  const clock = new ManualClock();
  const system = await clock.passUntil(openCloudAppOn(clock, { hasMetrics: true, deadlineMs: 20_000 }));
  change(system.fake);
  return {
    ...system,
    ask: (userId: number) => clock.passUntil(system.rank(userId)),
    /** The surprises that the metric counts, except those about changes. */
    kinds: async () =>
      (await scrape(system.metricsUrl))
        .filter(({ name, labels }) => name === 'rankd_platform_surprises_total' && labels['operation'] !== 'change')
        .map(({ labels: { operation, what }, value }) => ({ operation, what, value })),
    warnings: () => system.logLines.filter((line) => line.includes('responses differ from those that rankd expects')),
  };
}

test.concurrent('an ordinary group causes no surprises', async () => {
  await using daemon = await daemonOn();
  expect((await daemon.ask(1001)).status).toBe(200);
  await daemon.clock.advance(20_000);
  expect(await daemon.kinds()).toEqual([]);
  expect(daemon.warnings()).toEqual([]);
});

const membership = 'ListGroupMembershipsResponse.groupMemberships[]';

test.concurrent.each<[surprise: string, change: (roblox: FakeOpenCloud) => unknown, operation: string, what: string]>([
  [
    'an unknown field',
    (roblox) => Object.assign(roblox, { addedFields: { badge: 'gold' } }),
    'memberships',
    `${membership}.badge: unknown field`,
  ],
  [
    'a field whose name is a value',
    (roblox) => Object.assign(roblox, { addedFields: { 4711: 'gold' } }),
    'assign',
    'GroupMembership.?: unknown field',
  ],
  [
    'a missing field',
    (roblox) => Object.assign(roblox, { removedFields: ['roles'] }),
    'memberships',
    `${membership}.roles: missing`,
  ],
  [
    'an undocumented status',
    ({ faults }) => faults.add({ operation: 'memberships', kind: 'status 520' }),
    'memberships',
    'status 520',
  ],
  [
    'an undocumented success status',
    (roblox) => Object.assign(roblox, { writeAnswer: 'no content' }),
    'unassign',
    'status 204',
  ],
  [
    'an undocumented error code',
    ({ faults }) => faults.add({ operation: 'assign', kind: 'status 503', body: '{"code":"GROUP_MOVES"}' }),
    'assign',
    'code GROUP_MOVES',
  ],
  ['an HTML page', ({ faults }) => faults.add({ operation: 'memberships', kind: 'html' }), 'memberships', 'no JSON'],
  [
    'a refusal although its headers report remaining calls',
    ({ budgets }) => Object.assign(budgets, { hidden: { burst: 1, perSecond: 0.5 } }),
    'memberships',
    '429 although the rate limit was not used up',
  ],
  [
    'a refusal without headers although earlier headers reported remaining calls',
    ({ faults }) => faults.add({ operation: 'memberships', kind: 'status 429', skip: 1 }),
    'memberships',
    '429 although the rate limit was not used up',
  ],
])('%s is counted and logged, and does not prevent the change', async (_surprise, change, operation, what) => {
  await using daemon = await daemonOn(change);
  expect((await daemon.ask(1001)).status).toBe(200);
  expect((await daemon.ask(1003)).status).toBe(200);
  expect(await daemon.kinds()).toContainEqual({ operation, what, value: expect.any(Number) });
  await daemon.clock.advance(1_000);
  expect(daemon.warnings()).toContainEqual(
    expect.stringContaining(`"operation":"${operation}","what":${JSON.stringify(what)}`),
  );
  expect(`${daemon.logLines}${JSON.stringify(await daemon.kinds())}`).not.toMatch(/gold|4711/);
});

test.concurrent('the log warns of each kind of surprise once a day while it persists, and of a new kind at once', async () => {
  await using daemon = await daemonOn(({ faults }) =>
    faults.add({ operation: 'unassign', kind: 'status 520', body: '' }),
  );
  const { clock, fake } = daemon;
  const visit = async (userId: number) => {
    await daemon.ask(userId);
    await clock.advance(1_000);
    return daemon.warnings().length;
  };
  expect(await visit(1001)).toBe(1);
  for (const userId of [20_000, 20_001, 20_002]) fake.group.setMember(userId, [sampleRoles.trainee]);
  fake.faults.add({ operation: 'unassign', kind: 'status 520', body: '' });
  expect(await visit(20_000)).toBe(1);
  fake.faults.add({ operation: 'unassign', kind: 'status 521', body: '' });
  expect(await visit(20_001)).toBe(2);
  await clock.skip(dayMs);
  expect(daemon.warnings()).toHaveLength(3); // the surprises since the last warning are logged now
  await clock.skip(dayMs);
  expect(daemon.warnings()).toHaveLength(3);
  fake.faults.add({ operation: 'unassign', kind: 'status 520', body: '' });
  expect(await visit(20_002)).toBe(4);
  expect(sampleOf(await scrape(daemon.metricsUrl), 'rankd_platform_surprises_total', { what: 'status 520' })).toBe(3);
});

test.concurrent('however many kinds of surprises occur, the metric has at most 51 series: further kinds count as one', async () => {
  const fields = Array.from({ length: 200 }, (_, index) => [`field${index}`, 1]);
  await using daemon = await daemonOn((roblox) => Object.assign(roblox, { addedFields: Object.fromEntries(fields) }));
  await daemon.ask(1001);
  const kinds = await daemon.kinds();
  expect(kinds).toHaveLength(51);
  expect(kinds).toContainEqual({ operation: 'any', what: 'more kinds', value: expect.any(Number) });
});
