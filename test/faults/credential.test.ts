import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { codeOf, expectError } from '../support/answers.ts';
import type { Fault } from '../support/fake-open-cloud/faults.ts';
import type { FakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';
import { send } from '../support/open-test-app.ts';

const { trainee: bob, officer: eve, traineeAndCaptain: veteran } = sampleUsers;
const dead = { status: 502, code: 'platform_credential', error: 'Roblox key not accepted' };
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

const readyz = ({ url }: OpenCloudApp) => send(`${url}/readyz`, {});
const linesAbout = ({ logLines }: OpenCloudApp, text: string) =>
  logLines.filter((line) => line.includes(text) && !line.includes('"msg":"request"'));

/** Skips an hour, after which the daemon checks the credential, and waits for that check. */
async function passHour({ fake, clock }: OpenCloudApp): Promise<void> {
  const reads = () => fake.journal.requests('roles').filter(({ endedAt }) => endedAt !== undefined).length;
  const before = reads();
  clock.skip(hourMs);
  while (reads() === before) await delay(2);
  await clock.sleep(30); // until the worker waits for the next hour
}

const deaths: Array<[reason: string, kill: (fake: FakeOpenCloud) => void]> = [
  ['disabled', ({ credential }) => Object.assign(credential, { enabled: false })],
  ['expired', ({ credential }) => Object.assign(credential, { expired: true })],
  ['replaced', ({ credential }) => Object.assign(credential, { apiKey: 'another' })],
];

describe('a key that dies', () => {
  test.each(deaths)('because it was %s is reported to each caller without another call to Roblox', (_reason, kill) =>
    onOpenCloud(async (system) => {
      const { fake } = system;
      expect((await system.rank(veteran)).status).toBe(200);
      kill(fake);
      const first = await system.rank(bob);
      expectError(first, dead);
      expect(await system.changeOf(first)).toMatchObject({ state: 'failed', code: 'platform_credential' });
      const soFar = fake.journal.entries.length;
      for (const answer of await Promise.all(Array.from({ length: 10 }, () => system.rank(eve)))) {
        expectError(answer, dead);
      }
      expect(fake.journal.entries).toHaveLength(soFar);
      expect(fake.group.held(bob)).toEqual([sampleRoles.trainee]);
    })(),
  );

  test(
    'makes /readyz fail, and is logged once with the fix',
    onOpenCloud(async (system) => {
      expect((await readyz(system)).status).toBe(200);
      system.fake.credential.enabled = false;
      await system.rank(bob);
      await system.rank(bob);
      expectError(await readyz(system), dead);
      const [line, ...more] = linesAbout(system, 'the Roblox key');
      expect(more).toEqual([]);
      expect(JSON.parse(String(line))).toMatchObject({
        level: 'error',
        hint: expect.stringContaining('Creator Dashboard'),
      });
      expect(line).not.toContain(system.fake.apiKey);
    }),
  );

  test(
    'in the middle of a change leaves the change open until the key works again',
    onOpenCloud(async (system) => {
      const { fake, clock } = system;
      fake.faults.add({ operation: 'assign', kind: 'slow', when: 'after', delayMs: 100 });
      const asked = system.rank(bob);
      await expect.poll(() => fake.group.held(bob), { interval: 1 }).toContain(sampleRoles.officer);
      fake.credential.enabled = false;
      const answer = await asked;
      expect([answer.status, codeOf(answer)]).toEqual([504, 'outcome_unknown']);
      fake.credential.enabled = true;
      clock.skip(10_000);
      await expect
        .poll(async () => {
          await system.recover();
          return (await system.changeOf(answer)).state;
        })
        .toBe('applied');
      expect(fake.group.held(bob)).toEqual([sampleRoles.officer]);
    }),
  );

  test(
    'causes one check a minute later, not one for each waiting caller',
    onOpenCloud(async (system) => {
      const { fake, clock } = system;
      fake.credential.enabled = false;
      await system.rank(bob);
      clock.skip(61_000); // rankd must read the acting account again
      const soFar = fake.journal.entries.length;
      for (let turn = 0; turn < 10; turn += 1) expectError(await system.rank(bob), dead);
      expect(fake.journal.entries.length - soFar).toBeLessThanOrEqual(1);
    }),
  );
});

describe('a write that Roblox refuses although the key is valid', () => {
  const challenge = '{"errors":[{"code":0,"message":"Challenge is required to authorize the request"}]}';

  test.each<[string, Omit<Fault, 'operation'>]>([
    ['a challenge', { kind: 'status 403', body: challenge }],
    ['an HTML page', { kind: 'status 403', body: '<html>Forbidden</html>' }],
    ['a 401', { kind: 'status 401' }],
  ])('with %s fails only for that caller; other callers are served', (_what, fault) =>
    onOpenCloud(async (system) => {
      const { fake, clock } = system;
      fake.faults.add({ ...fault, operation: 'assign', userId: bob, times: 5 });
      for (let turn = 0; turn < 5; turn += 1) {
        expectError(await system.rank(bob), dead);
        expect((await system.rank(turn % 2 === 0 ? eve : veteran)).status).toBe(200);
        clock.skip(2_000);
      }
      expect((await readyz(system)).status).toBe(200);
    })(),
  );

  test(
    'as a second step causes the first to be reverted at once',
    onOpenCloud(async (system) => {
      system.fake.faults.add({ operation: 'unassign', kind: 'status 401', userId: bob, times: 2 });
      expectError(await system.rank(bob), dead);
      expect(system.fake.group.held(bob)).toEqual([sampleRoles.trainee]);
    }),
  );
});

describe('a key that works again', () => {
  test(
    'is detected by a successful call if Roblox does not report the state of the key',
    onOpenCloud(async (system) => {
      const { fake, clock } = system;
      fake.faults.add({ operation: 'introspect', kind: 'status 404', times: 100 });
      fake.faults.add({ operation: 'memberships', kind: 'status 401' });
      expectError(await system.rank(bob), dead);
      expectError(await system.rank(bob), dead);
      clock.skip(10_000);
      await expect.poll(async () => (await readyz(system)).status).toBe(200);
      expect((await system.rank(bob)).status).toBe(200);
    }),
  );

  test(
    'is used again without a restart, and without a request for a change',
    onOpenCloud(async (system) => {
      const { fake, clock } = system;
      fake.credential.enabled = false;
      expectError(await system.rank(bob), dead);
      fake.credential.enabled = true;
      clock.skip(10_000);
      await expect.poll(async () => (await readyz(system)).status).toBe(200);
      expect((await system.rank(bob)).status).toBe(200);
      expect(linesAbout(system, 'the Roblox key works again')).toHaveLength(1);
    }),
  );

  test(
    'allows a retry under the same Idempotency-Key',
    onOpenCloud(async (system) => {
      const { fake, clock } = system;
      fake.credential.enabled = false;
      expectError(await system.rank(bob, { idempotencyKey: 'one' }), dead);
      fake.credential.enabled = true;
      clock.skip(10_000);
      await expect.poll(async () => (await readyz(system)).status).toBe(200);
      expect((await system.rank(bob, { idempotencyKey: 'one' })).status).toBe(200);
    }),
  );
});

describe('introspection', () => {
  test(
    'at startup detects a dead key before the first change is requested',
    onOpenCloud(
      async (system) => {
        expectError(await readyz(system), dead);
        expect(linesAbout(system, '"level":"error"')).toHaveLength(1);
        system.clock.skip(10_000);
        await expect.poll(() => linesAbout(system, 'is disabled')).toHaveLength(1); // from introspection
        expect(linesAbout(system, 'background work failed')).toEqual([]);
        expect(system.fake.journal.writes()).toEqual([]);
      },
      { prepare: ({ credential }) => Object.assign(credential, { enabled: false }) },
    ),
  );

  test(
    'every hour detects a key that died while there were no requests',
    onOpenCloud(async (system) => {
      const { fake, clock } = system;
      fake.credential.expired = true;
      clock.skip(hourMs - 1_000);
      expect(fake.journal.requests('introspect')).toHaveLength(1);
      clock.skip(1_000);
      await expect.poll(async () => (await readyz(system)).status).toBe(502);
      expect(linesAbout(system, 'is expired')).toHaveLength(1);
    }),
  );

  test(
    'warns two weeks before the key expires, once a day',
    onOpenCloud(async (system) => {
      const { fake, clock } = system;
      const warnings = () => linesAbout(system, 'the Roblox key expires');
      fake.credential.expirationTimeUtc = new Date(clock.now() + 14.5 * dayMs).toISOString();
      const hours = async (count: number) => {
        for (let hour = 0; hour < count; hour += 1) await passHour(system);
      };
      await hours(11);
      expect(warnings()).toEqual([]);
      await hours(2);
      await expect.poll(warnings).toEqual([expect.stringContaining('expires in 13 days')]);
      await hours(12);
      expect(warnings()).toHaveLength(1);
      await hours(13);
      await expect.poll(warnings).toHaveLength(2);
    }),
  );

  test(
    'uses the key every hour, so Roblox does not expire it in a quiet group, and logs no warning',
    onOpenCloud(async (system) => {
      const { fake, clock } = system;
      expect((await system.rank(bob)).status).toBe(200);
      const before = fake.journal.requests('roles').length;
      clock.skip(59 * dayMs);
      await expect.poll(() => fake.journal.requests('roles').length).toBeGreaterThan(before);
      expect(fake.journal.requests('roles').at(-1)?.headers).toHaveProperty('x-api-key');
      await clock.sleep(30); // until the result is logged
      expect(linesAbout(system, '"level":"warn"')).toEqual([]);
    }),
  );
});
