import { describe, expect, test } from 'vitest';
import { RankdError } from '../../src/base/errors.ts';
import type { Credential } from '../../src/core/model.ts';
import { CredentialBreaker } from '../../src/platforms/credential-breaker.ts';
import type { CallContext, Platform } from '../../src/ports/index.ts';
import { ManualClock } from '../support/manual-clock.ts';

const call: CallContext = { signal: new AbortController().signal, deadlineAt: Number.POSITIVE_INFINITY, lane: 'test' };
const valid: Credential = { state: 'valid', userId: 9001, canWrite: true };
const refusedKey = () => new RankdError('platform_credential', 'Roblox does not accept the key.', { hint: 'renew it' });

/**
 * Creates a breaker around a platform whose credential a test can change, and records the calls that reach the
 * platform.
 */
function breakerUnderTest() {
  const clock = new ManualClock();
  const state = {
    credential: valid,
    failure: undefined as RankdError | undefined,
    /** Delays the platform's successful responses until this promise resolves. */
    answered: undefined as Promise<void> | undefined,
    calls: [] as string[],
  };
  const answer = async <T>(name: string, value: T): Promise<T> => {
    state.calls.push(name);
    if (state.failure !== undefined && name !== 'check') throw state.failure;
    await state.answered;
    return value;
  };
  const member = { userId: 1001, roleIds: [] };
  const platform: Platform = {
    readLagMs: 8_000,
    writeMs: 0,
    group: () => answer('group', { id: 1, name: 'Group', memberCount: 1 }),
    roles: () => answer('roles', []),
    role: () => answer('role', undefined),
    getMember: () => answer('member', member),
    membersWith: () => answer('members', { items: [] }),
    findUser: () => answer('user', undefined),
    placesOf: () => answer('places', []),
    userName: () => answer('userName', undefined),
    reserve: async () => ({ [Symbol.dispose]: () => undefined }),
    pace: () => [],
    surprises: () => [],
    reachability: () => ({ unreached: [], reached: [] }),
    assignRole: () => answer('assign', member),
    unassignRole: () => answer('unassign', member),
    checkCredential: () => answer('check', state.credential),
    close: () => answer('close', undefined),
  };
  const reports: Array<string | undefined> = [];
  const report = (dead: RankdError | undefined) => void reports.push(dead?.message);
  const breaker = new CredentialBreaker({ platform, clock, report });
  const change = { userId: 1001, roleId: 5 };
  const everyCall = () => [
    breaker.group(call),
    breaker.roles(call),
    breaker.getMember(1001, call),
    breaker.assignRole(change, call),
    breaker.unassignRole(change, call),
  ];
  /** Makes one call; resolves with `done`, or with the error's code. */
  const use = () =>
    breaker.getMember(1001, call).then(
      () => 'done',
      (error: RankdError) => error.code,
    );
  return { clock, state, breaker, reports, everyCall, use };
}

describe('a credential that works', () => {
  test('passes all calls and other failures through, and nothing is reported', async () => {
    const { state, breaker, reports, everyCall, use } = breakerUnderTest();
    await Promise.all([...everyCall(), breaker.checkCredential(call)]);
    expect(state.calls).toEqual(['group', 'roles', 'member', 'assign', 'unassign', 'check']);
    state.failure = new RankdError('platform_unavailable', 'Down.');
    expect(await use()).toBe('platform_unavailable');
    expect([breaker.dead, breaker.readLagMs, reports]).toEqual([undefined, 8_000, []]);
  });
});

describe('a refused write', () => {
  test('triggers a check of the credential at most every ten seconds, even if the platform does not report its state', async () => {
    const { clock, state, breaker } = breakerUnderTest();
    state.failure = refusedKey();
    const checks: number[] = [];
    breaker.checkCredential = async () => {
      checks.push(clock.monotonic());
      throw new RankdError('platform_unavailable', 'No report.');
    };
    for (let second = 0; second < 30; second += 1) {
      await expect(breaker.assignRole({ userId: 1001, roleId: 5 }, call)).rejects.toMatchObject({ hint: 'renew it' });
      await clock.advance(1_000);
    }
    expect(checks).toEqual([0, 10_000, 20_000]);
    expect(breaker.dead).toBeUndefined();
  });
});

describe('a dead credential', () => {
  test('is not used again after the first refused call, and is reported once', async () => {
    const { state, breaker, reports, everyCall, use } = breakerUnderTest();
    state.failure = refusedKey();
    expect(await use()).toBe('platform_credential');
    state.calls.length = 0;
    for (const asked of [...everyCall(), breaker.checkCredential(call)]) {
      await expect(asked).rejects.toMatchObject({ code: 'platform_credential', hint: 'renew it' });
    }
    expect(state.calls).toEqual([]);
    expect(reports).toEqual(['Roblox does not accept the key.']);
  });

  test.each<[string, Credential]>([
    ['is disabled', { state: 'disabled' }],
    ['is expired', { state: 'expired' }],
    ['is invalid', { state: 'invalid' }],
  ])('is not used again if introspection reports that it %s', async (what, credential) => {
    const { state, breaker, reports, use } = breakerUnderTest();
    state.credential = credential;
    expect(await breaker.checkCredential(call)).toBe(credential);
    expect(await use()).toBe('platform_credential');
    expect(state.calls).toEqual(['check']);
    expect(reports).toEqual([expect.stringContaining(what)]);
  });

  test('is checked by only one of many callers, with a backoff of up to a minute', async () => {
    const { clock, state, use } = breakerUnderTest();
    state.failure = refusedKey();
    state.credential = { state: 'disabled' };
    await use();
    state.calls.length = 0;
    const askedAt: number[] = [];
    for (let second = 1; second <= 250; second += 1) {
      await clock.advance(1_000);
      const before = state.calls.length;
      await Promise.all([use(), use(), use()]);
      if (state.calls.length > before) askedAt.push(second);
    }
    expect(askedAt).toEqual([10, 30, 70, 130, 190, 250]);
    expect(state.calls).toEqual(askedAt.map(() => 'check'));
  });

  test('is used again as soon as the platform reports that it works, which is reported once', async () => {
    const { clock, state, breaker, reports, use } = breakerUnderTest();
    state.failure = refusedKey();
    await use();
    state.failure = undefined;
    await clock.advance(10_000);
    expect([await use(), await use(), breaker.dead]).toEqual(['done', 'done', undefined]);
    expect(state.calls).toEqual(['member', 'check', 'member', 'member']);
    expect(reports).toEqual(['Roblox does not accept the key.', undefined]);
  });

  test('that works again and then fails again is checked with a new backoff', async () => {
    const { clock, state, breaker, use } = breakerUnderTest();
    for (const life of ['first', 'second']) {
      [state.failure, state.credential] = [refusedKey(), { state: 'disabled' }];
      await use();
      for (const waitMs of [10_000, 20_000]) {
        await clock.advance(waitMs);
        state.calls.length = 0;
        await use();
        expect(state.calls, `${life} life, after ${waitMs} ms`).toEqual(['check']);
      }
      [state.failure, state.credential] = [undefined, valid];
      await clock.advance(40_000);
      expect([await use(), await use(), breaker.dead]).toEqual(['done', 'done', undefined]);
    }
  });

  test('does not count as working again because an earlier call succeeds', async () => {
    const { state, breaker, use } = breakerUnderTest();
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    state.answered = answered;
    const early = breaker.roles(call);
    state.answered = undefined;
    state.failure = refusedKey();
    await use();
    answer();
    await early;
    expect(breaker.dead).toBeDefined();
  });

  test('that passes every check but is still refused is also retried with a backoff', async () => {
    const { clock, state, reports, use } = breakerUnderTest();
    state.failure = refusedKey();
    await use();
    state.calls.length = 0;
    for (let second = 1; second <= 250; second += 1) {
      await clock.advance(1_000);
      await use();
    }
    expect(state.calls.filter((name) => name === 'member').length).toBeLessThanOrEqual(7);
    expect(reports.length).toBeLessThanOrEqual(15);
  });

  test('is reported again if the reason has changed', async () => {
    const { clock, state, reports, use } = breakerUnderTest();
    state.failure = refusedKey();
    state.credential = { state: 'expired' };
    await use();
    await clock.advance(10_000);
    await use();
    expect(reports).toEqual(['Roblox does not accept the key.', expect.stringContaining('is expired')]);
  });

  test('does not prevent an outage of the platform from being reported as such', async () => {
    const { clock, state, breaker, use } = breakerUnderTest();
    state.failure = refusedKey();
    await use();
    await clock.advance(10_000);
    state.failure = new RankdError('platform_unavailable', 'Down.');
    expect(await use()).toBe('platform_unavailable');
    expect(breaker.dead).toBeUndefined(); // introspection reported the credential as valid
  });
});
