import { expect, test } from 'vitest';
import type { RankdError } from '../../../src/base/errors.ts';
import type { NamedUser } from '../../../src/core/model.ts';
import { openGates } from '../../../src/platforms/upstream/operations.ts';
import { UserNames } from '../../../src/platforms/upstream/user-names.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { onOpenCloud, sampleUsers } from '../../support/open-cloud-app.ts';

const call = { signal: new AbortController().signal, deadlineAt: 1_000_000_000, lane: 'test' };

/** Creates a name lookup whose service knows every name, except those that begin with "no". */
function names() {
  const clock = new ManualClock();
  const asked: string[][] = [];
  const ask = async (batch: string[]): Promise<Array<NamedUser & { asked: string }>> => {
    asked.push(batch);
    return batch.filter((name) => !name.startsWith('no')).map((name) => ({ asked: name, id: name.length, name }));
  };
  const users = new UserNames({ clock, ask, timeoutMs: 5_000 });
  const find = async (...wanted: string[]) =>
    clock.passUntil(Promise.all(wanted.map(async (name) => (await users.find(name, call))?.id)));
  return { clock, asked, find };
}

test('a thousand concurrent lookups of one name share one request', async () => {
  const { asked, find } = names();
  const found = await find(...Array.from({ length: 1_000 }, () => 'Builderman'));
  expect(new Set(found)).toEqual(new Set([10]));
  expect(asked).toEqual([['builderman']]);
});

test('names requested within a tenth of a second share one request, up to fifty of them', async () => {
  const { asked, find } = names();
  await find(...Array.from({ length: 120 }, (_, index) => `user_${index}`));
  expect(asked.map((batch) => batch.length)).toEqual([50, 50, 20]);
});

test('a key that floods the lookup delays no other key, and never exceeds the requests allowed per minute', async () => {
  const clock = new ManualClock();
  const askedAt: number[] = [];
  const users = new UserNames({
    clock,
    timeoutMs: 5_000,
    ask: async (batch) => {
      askedAt.push(clock.monotonic());
      await clock.sleep(200);
      return batch.map((name) => ({ asked: name, id: name.length, name }));
    },
  });
  const ask = (name: string, lane: string) =>
    users.find(name, { ...call, deadlineAt: clock.monotonic() + 20_000, lane });
  let flooded = 0;
  const waited: number[] = [];
  for (let second = 0; second < 70; second += 1) {
    for (let count = 0; count < 50; count += 1) ask(`flood_${flooded++}`, 'leaked').catch(() => undefined);
    if (second % 20 === 15) {
      const since = clock.monotonic();
      void ask(`honest_${second}`, 'shop').then(() => waited.push(clock.monotonic() - since));
      void ask(`flood_${flooded - 1}`, 'shop').then(() => waited.push(clock.monotonic() - since)); // already queued
    }
    await clock.advance(1_000);
  }
  expect(waited).toHaveLength(6);
  expect(Math.max(...waited)).toBeLessThan(4_500);
  for (const at of askedAt)
    expect(askedAt.filter((other) => other > at - 60_000 && other <= at).length).toBeLessThanOrEqual(30);
});

test('a name is looked up again after all callers of its earlier requests in two lanes have given up', async () => {
  const clock = new ManualClock();
  const ask = async (batch: string[]) => {
    await clock.sleep(1_000);
    return batch.map((name) => ({ asked: name, id: name.length, name }));
  };
  const users = new UserNames({ clock, ask, timeoutMs: 5_000 });
  const find = async (lane: string, names: string[], withinMs = 60_000) => {
    const deadlineAt = clock.monotonic() + withinMs;
    return (await Promise.all(names.map((name) => users.find(name, { ...call, lane, deadlineAt })))).map(
      (one) => one?.id,
    );
  };
  const many = (word: string, count: number) => Array.from({ length: count }, (_, index) => `${word}_${index}`);
  void find('shop', ['first']);
  await clock.advance(200);
  void find('shop', ['bob'], 100);
  void find('bot', many('before', 60));
  void find('bot', ['bob'], 100);
  await clock.advance(1_300); // the first fifty names are requested; bob is still queued in the lane `bot`
  void find('bot', many('behind', 40));
  const bob = find('bot', ['bob']);
  await clock.advance(5_000);
  await expect(Promise.race([bob, 'nothing'])).resolves.toEqual([3]);
});

test('a name is cached for five minutes, and an unknown name for half a minute', async () => {
  const { clock, asked, find } = names();
  await find('somebody', 'nobody');
  await clock.advance(29_000);
  expect(await find('SOMEBODY', 'nobody')).toEqual([8, undefined]);
  expect(asked).toHaveLength(1);
  await clock.advance(2_000);
  await find('somebody', 'nobody');
  await clock.advance(270_000);
  await find('somebody');
  expect(asked).toEqual([['somebody', 'nobody'], ['nobody'], ['somebody']]);
});

test('a thousand names are cached; the next one replaces the oldest', async () => {
  const { asked, find } = names();
  await find('first');
  for (let batch = 0; batch < 20; batch += 1) {
    await find(...Array.from({ length: 50 }, (_, index) => `user_${batch}_${index}`));
  }
  expect(asked).toHaveLength(21);
  await find('user_0_0', 'user_19_49');
  expect(asked).toHaveLength(21);
  await find('first');
  expect(asked).toHaveLength(22);
});

test('names of JavaScript object properties are ordinary names', async () => {
  const { find } = names();
  expect(await find('__proto__', 'constructor', 'no_such_user')).toEqual([9, 11, undefined]);
});

test('at most thirty requests a minute are sent until the platform reports its limit', async () => {
  const clock = new ManualClock();
  const { userNames } = openGates(clock);
  const entered: number[] = [];
  const all = Array.from({ length: 40 }, async () => {
    await userNames.enter(call);
    entered.push(clock.monotonic());
    userNames.leave();
  });
  await clock.advance(50_000);
  expect(entered.length).toBeGreaterThan(25);
  expect(entered.length).toBeLessThanOrEqual(30);
  await clock.passUntil(Promise.all(all));
});

test(
  'previous names and banned users are found, and the service never receives the key',
  onOpenCloud(async ({ app: { platform }, call, fake }) => {
    expect(await platform.findUser('oldNEWCOMER', call())).toEqual({ id: sampleUsers.trainee, name: 'Newcomer' });
    expect(await platform.findUser('Banned_Bob', call())).toEqual({ id: sampleUsers.memberOnly, name: 'banned_bob' });
    expect(await platform.findUser('constructor', call())).toEqual({ id: sampleUsers.stranger, name: 'constructor' });
    expect(await platform.findUser('__proto__', call())).toBeUndefined();
    expect(fake.journal.requests('userNames').every(({ headers }) => !('x-api-key' in headers))).toBe(true);
  }),
);

test.each([
  ['too many requests', 'status 429', 'platform_busy'],
  ['an HTML page', 'html', 'platform_unavailable'],
  ['an oversized response', 'oversized', 'platform_unavailable'],
  ['a truncated response', 'truncated', 'platform_unavailable'],
  ['a refusal of calls without a login', 'status 401', 'platform_rejected'],
  ['a refusal', 'status 403', 'platform_rejected'],
  ['no response', 'hang', 'platform_unavailable'],
] as const)(
  'the error for %s from the users service is reported in time, and advises sending the id',
  (_, kind, code) =>
    onOpenCloud(async ({ app: { platform }, call, fake }) => {
      fake.faults.add({ operation: 'userNames', kind, times: 100 });
      const error: RankdError = await platform.findUser('Newcomer', call()).then(
        () => expect.unreachable(),
        (cause) => cause,
      );
      expect([error.code, error.message]).toEqual([code, expect.stringContaining('Send the user id')]);
      fake.faults.clear();
    })(),
);

test.each(['status 404', 'status 410'] as const)(
  'a name lookup is not retried after %s, and the error names the setting for the address',
  (kind) =>
    onOpenCloud(async ({ app: { platform }, call, fake }) => {
      fake.faults.add({ operation: 'userNames', kind, times: 100 });
      const lookup = platform.findUser('Newcomer', call());
      await expect(lookup).rejects.toMatchObject({
        ...{ code: 'platform_rejected', retryAfterMs: undefined },
        ...{ message: expect.not.stringContaining('at the moment') },
        ...{ hint: expect.stringContaining('platform.users_base_url') },
      });
      fake.faults.clear();
    })(),
);
