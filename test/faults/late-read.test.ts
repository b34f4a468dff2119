import { expect, test, vi } from 'vitest';
import { codeOf } from '../support/answers.ts';
import type { Fault } from '../support/fake-open-cloud/index.ts';
import { ManualClock } from '../support/manual-clock.ts';
import {
  type OpenCloudApp,
  type OpenCloudAppOptions,
  openCloudAppOn,
  type RankOptions,
  sampleRoles,
} from '../support/open-cloud-app.ts';
import { type Answer, send } from '../support/open-test-app.ts';
import { sampleOf, scrape } from '../support/scrape.ts';

vi.setConfig({ maxConcurrency: 8 });

const { base, recruit, trainee, officer, captain } = sampleRoles;
const lagMs = 8_000;
const members = Array.from({ length: 25 }, (_, index) => 20_000 + index);
const [ann = 0, bob = 0, eve = 0, dan = 0] = members;

interface System extends OpenCloudApp<ManualClock> {
  /** Requests a change, and lets time pass until the response arrives. */
  ask(userId: number, options?: RankOptions): Promise<Answer>;
  reads(userId: number): number;
  alarms(level: 'warn' | 'error'): string[];
}

function onManualClock(
  body: (system: System) => Promise<void>,
  options: OpenCloudAppOptions & { held?: number[] } = {},
) {
  return async () => {
    const clock = new ManualClock();
    const opening = openCloudAppOn(clock, { readLagMs: lagMs, deadlineMs: 20_000, ...options });
    await using system = await clock.passUntil(opening);
    const { fake } = system;
    for (const userId of members) fake.group.setMember(userId, options.held ?? [trainee]);
    await body({
      ...system,
      ask: (userId, asked) => clock.passUntil(system.rank(userId, asked)),
      reads: (about) => fake.journal.requests('memberships').filter(({ userId }) => userId === about).length,
      alarms: (level) => system.logLines.filter((line) => line.startsWith(`{"level":"${level}"`)),
    });
    expect(fake.violations()).toEqual([]);
  };
}

test.concurrent(
  'the first change after a start or reload, but not the next one, is verified by a read once reads can no longer lag',
  onManualClock(async ({ ask, reads, clock, reload, fake }) => {
    for (const [first, second] of [
      [ann, bob],
      [eve, dan],
    ] as const) {
      expect((await ask(first)).status).toBe(200);
      expect(reads(first)).toBe(1);
      await clock.advance(lagMs - 1);
      expect(reads(first)).toBe(1);
      await clock.advance(2_000);
      expect(reads(first)).toBe(2);

      expect((await ask(second)).status).toBe(200);
      await clock.advance(60_000);
      expect(reads(second)).toBe(1);
      expect(fake.journal.writes(second)).toHaveLength(2);
      await reload();
    }
  }),
);

test.concurrent(
  'the first change after a reload is verified, even while the verification of an earlier one is pending',
  onManualClock(async ({ ask, reads, clock, reload }) => {
    expect((await ask(ann)).status).toBe(200);
    await reload();
    await clock.advance(1_000);
    expect((await ask(bob)).status).toBe(200);
    await clock.advance(lagMs - 500); // by now, the first change has been verified
    expect([reads(ann), reads(bob)]).toEqual([2, 1]);
    expect((await ask(eve)).status).toBe(200);
    await clock.advance(60_000);
    expect([reads(ann), reads(bob), reads(eve)]).toEqual([2, 2, 1]);
  }),
);

test.concurrent(
  'every demotion is verified by a late read, and one in twenty of the other changes',
  onManualClock(async ({ ask, reads, clock }) => {
    for (const userId of members) {
      expect((await ask(userId)).status).toBe(200);
      await clock.advance(lagMs + 2_000);
    }
    expect(members.filter((userId) => reads(userId) > 1)).toEqual([members[0], members[19]]);
    const before = reads(bob);
    expect((await ask(bob, { newRankId: 10 })).status).toBe(200);
    await clock.advance(lagMs + 2_000);
    expect(reads(bob)).toBe(before + 2);
  }),
);

test.concurrent(
  'a change that Roblox lost becomes unknown and is reconciled, and until a late read agrees, each write needs a read',
  onManualClock(
    async ({ ask, reads, clock, fake, changeOf, alarms, metricsUrl }) => {
      fake.writesOnlyEcho = true;
      const answer = await ask(ann);
      expect(answer.status).toBe(200);
      expect((await changeOf(answer)).state).toBe('applied');
      await clock.advance(lagMs + 100);
      expect((await changeOf(answer)).state).toBe('unknown');
      expect(alarms('error')).toEqual([expect.stringContaining('does not show a change')]);
      expect(sampleOf(await scrape(metricsUrl), 'rankd_platform_surprises_total', { what: 'not_held' })).toBe(1);
      await clock.advance(lagMs + 4_000);
      expect(await changeOf(answer)).toMatchObject({
        state: 'failed',
        rolesAfter: [base, trainee].sort((a, b) => a - b),
      });

      const doubted = await ask(bob);
      expect([doubted.status, codeOf(doubted)]).toEqual([502, 'platform_credential']);

      fake.writesOnlyEcho = false;
      expect((await ask(eve)).status).toBe(200);
      expect(reads(eve)).toBe(3); // one for the plan, and one after each of the two writes
      await clock.advance(lagMs + 100); // the late read confirms the change
      expect((await ask(dan)).status).toBe(200);
      expect(reads(dan)).toBe(1);
    },
    { hasMetrics: true },
  ),
);

test.concurrent.each<Partial<Fault> & Pick<Fault, 'kind'>>([
  { kind: 'status 403' },
  { kind: 'status 400' },
  { kind: 'status 429', headers: { 'retry-after': '60' } },
])(
  'a refusal (%o) of a write that was carried out is reported at once, and becomes applied once reads show it',
  (refusal) =>
    onManualClock(
      async ({ ask, clock, fake, changeOf, alarms, metricsUrl, app }) => {
        fake.lagMs = 6_000;
        fake.faults.add({ operation: 'assign', ...refusal, when: 'after' });
        const askedAt = clock.monotonic();
        const answer = await ask(ann);
        expect(answer.status).toBeGreaterThanOrEqual(400);
        expect(clock.monotonic() - askedAt).toBeLessThan(2_000);
        expect(['refused', 'failed']).toContain((await changeOf(answer)).state);

        await clock.advance(lagMs + 100);
        expect(await changeOf(answer)).toMatchObject({
          state: 'unknown',
          message: expect.stringContaining('shows a change that it had refused'),
        });
        expect(alarms('error')).toEqual([expect.stringContaining('shows a change that it had refused')]);
        expect(
          sampleOf(await scrape(metricsUrl), 'rankd_platform_surprises_total', { what: 'held_though_refused' }),
        ).toBe(1);
        expect(app.trust.believesAnswers).toBe(false);

        await clock.advance(2 * lagMs + 4_000);
        expect(await changeOf(answer)).toMatchObject({
          state: 'applied',
          code: null,
          rolesAfter: [base, officer].sort((a, b) => a - b),
        });
        expect(fake.group.held(ann)).toEqual([officer]);
      },
      { hasMetrics: true },
    )(),
);

test.concurrent(
  'a real refusal is verified by a late read and stays a refusal, and the first change after it is verified as well',
  onManualClock(async ({ ask, reads, clock, fake, changeOf, alarms }) => {
    fake.lagMs = 6_000;
    fake.faults.add({ operation: 'assign', kind: 'status 403' });
    const answer = await ask(ann);
    const planned = reads(ann);
    expect((await ask(bob)).status).toBe(200);
    await clock.advance(lagMs + 2_000);
    expect([reads(ann) - planned, reads(bob)]).toEqual([1, 2]);
    expect(await changeOf(answer)).toMatchObject({ state: 'refused', code: 'above_acting_account' });
    expect([alarms('error'), fake.group.held(ann)]).toEqual([[], [trainee]]);
  }),
);

test.concurrent(
  'of repeated refusals for one member, only the last one is verified',
  onManualClock(async ({ ask, reads, clock, fake }) => {
    fake.faults.add({ operation: 'assign', kind: 'status 403', times: 5 });
    for (let tries = 0; tries < 5; tries += 1) expect((await ask(ann)).status).toBe(403);
    const before = reads(ann);
    await clock.advance(2 * lagMs);
    expect(reads(ann) - before).toBe(1);
  }),
);

test.concurrent(
  'a member whom a moderator has since given a different role proves nothing: the outcome stays as reported',
  onManualClock(async ({ ask, clock, fake, changeOf, alarms, app }) => {
    const answer = await ask(ann);
    await clock.advance(1_000);
    fake.group.change(ann, [captain], fake.now());
    await clock.advance(lagMs + 4_000);
    expect((await changeOf(answer)).state).toBe('applied');
    expect(fake.group.held(ann)).toEqual([captain]);
    expect([alarms('error'), app.trust.believesAnswers]).toEqual([[], true]);
  }),
);

test.concurrent(
  'a change that someone else has since undone also counts as lost, because rankd cannot know who undid it',
  onManualClock(async ({ ask, clock, fake, changeOf, alarms }) => {
    const answer = await ask(ann);
    await clock.advance(1_000);
    fake.group.change(ann, [trainee], fake.now());
    await clock.advance(lagMs + 100);
    expect(alarms('error')).toEqual([expect.stringContaining('or someone undid it by hand')]);
    await clock.advance(lagMs + 4_000);
    expect(await changeOf(answer)).toMatchObject({
      state: 'failed',
      message: expect.stringContaining('has undone it'),
    });
  }),
);

test.concurrent(
  'a member who holds neither the earlier nor the new rank gets the lower of the two',
  onManualClock(async ({ ask, clock, fake, changeOf, alarms }) => {
    const answer = await ask(ann);
    await clock.advance(1_000);
    fake.group.change(ann, [], fake.now());
    await clock.advance(2 * lagMs + 4_000);
    expect(alarms('error')).toEqual([expect.stringContaining('does not show a change')]);
    await clock.advance(lagMs + 4_000); // rankd no longer trusts responses to writes, and reads can lag
    expect(await changeOf(answer)).toMatchObject({
      state: 'failed',
      message: expect.stringContaining('was left with neither'),
    });
    expect(fake.group.held(ann)).toEqual([trainee]);
  }),
);

test.concurrent(
  'a member who has since been changed again, or has left, proves nothing',
  onManualClock(async ({ ask, reads, clock, fake, alarms }) => {
    expect((await ask(ann)).status).toBe(200);
    expect((await ask(ann, { newRankId: 50 })).status).toBe(200);
    await clock.advance(lagMs + 1_000);
    expect(reads(ann)).toBe(2);
    expect((await ask(bob)).status).toBe(200);
    fake.group.removeMember(bob);
    await clock.advance(lagMs + 1_000);
    expect(alarms('error')).toEqual([]);
  }),
);

test.concurrent(
  'an unrelated role that vanishes is counted and logged; three such changes in a row stop all others until a reload',
  onManualClock(
    async ({ ask, clock, fake, changeOf, alarms, metricsUrl, reload, url }) => {
      fake.assignReplaces = true;
      for (const userId of [ann, bob, eve]) {
        const answer = await ask(userId);
        expect(answer.status).toBe(200);
        expect((await changeOf(answer)).rolesAfter).toEqual([base, officer].sort((a, b) => a - b));
      }
      expect(alarms('warn')).toHaveLength(3);
      const samples = await scrape(metricsUrl);
      expect(sampleOf(samples, 'rankd_platform_surprises_total', { what: 'role_vanished' })).toBe(3);
      expect(sampleOf(samples, 'rankd_platform_trusted')).toBe(0);
      expect(alarms('error')).toEqual([expect.stringContaining('behaves unexpectedly')]);

      const stopped = await ask(dan);
      expect([stopped.status, codeOf(stopped)]).toEqual([503, 'platform_unavailable']);
      expect(stopped.text).toContain('Roblox behaves unexpectedly');
      expect(fake.journal.writes(dan)).toEqual([]);
      expect((await clock.passUntil(send(`${url}/readyz`, {}))).status).toBe(503);

      fake.assignReplaces = false;
      await reload();
      expect((await clock.passUntil(send(`${url}/readyz`, {}))).status).toBe(200);
      expect((await ask(dan)).status).toBe(200);
      expect(fake.group.held(dan)).toEqual([recruit, officer].sort((a, b) => a - b));
    },
    { held: [recruit, trainee], hasMetrics: true },
  ),
);

test.concurrent(
  'an unrelated role that appears is logged; ordinary changes in between prevent a stop',
  onManualClock(async ({ rank, clock, fake, alarms }) => {
    for (const [index, userId] of members.slice(0, 6).entries()) {
      const isOdd = index % 2 === 0;
      if (isOdd) fake.faults.add({ operation: 'assign', kind: 'slow', delayMs: 500 });
      const answer = rank(userId);
      while (fake.journal.writes(userId).length === 0) await clock.advance(10);
      if (isOdd) fake.group.change(userId, [recruit, trainee], fake.now());
      expect((await clock.passUntil(answer)).status).toBe(200);
    }
    expect(alarms('warn')).toHaveLength(3);
    expect(alarms('error')).toEqual([]);
  }),
);
