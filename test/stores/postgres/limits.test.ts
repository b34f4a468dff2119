import { expect, onTestFinished, test } from 'vitest';
import { openPostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { codeOf } from '../../support/answers.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestApp, place } from '../../support/open-test-app.ts';
import { onServer, postgresDatabase } from '../../support/postgres-database.ts';

async function twoNodes() {
  const { address } = await postgresDatabase();
  const clock = new ManualClock();
  const open = async () => {
    const store = await openPostgresStore({ address, clock });
    onTestFinished(() => store.close());
    return store;
  };
  return { address, clock, stores: [await open(), await open()] as const };
}

test('concurrent requests from several nodes never exceed the limit, which refills', async () => {
  const { clock, stores } = await twoNodes();
  const limit = { name: 'rank key_1', perMinute: 60, burst: 20 };
  const allowed = async () => {
    const asked = stores.flatMap(({ limits }) => Array.from({ length: 30 }, () => limits?.takeShared([limit])));
    return (await Promise.all(asked)).filter((taken) => taken?.[0]?.isAllowed).length;
  };
  expect(await allowed()).toBe(20);
  await clock.skip(5_000);
  expect(await allowed()).toBe(5);
  clock.setWallClock(clock.now() + 86_400_000);
  expect(await allowed()).toBe(20);
  clock.setWallClock(clock.now() - 86_400_000);
  expect(await allowed()).toBe(0);
  await clock.skip(2_000);
  expect(await allowed()).toBe(2);
});

test('limits are applied in turn: if the first rejects, the next loses no token', async () => {
  const { stores } = await twoNodes();
  const [{ limits }] = stores;
  const first = { name: 'place key_1 42', perMinute: 60, burst: 1 };
  const second = { name: 'rank key_1', perMinute: 60, burst: 10 };
  expect(await limits?.takeShared([first, second])).toEqual([
    { isAllowed: true, left: 0 },
    { isAllowed: true, left: 9 },
  ]);
  expect(await limits?.takeShared([first, second])).toEqual([{ isAllowed: false, left: 0 }]);
  expect(await limits?.takeShared([second])).toEqual([{ isAllowed: true, left: 8 }]);
});

test('tokens that a node spent locally are subtracted from the shared limit, as of the time of their use', async () => {
  const { clock, stores } = await twoNodes();
  const [one, other] = stores;
  const limit = { name: 'verify key_1', perMinute: 60, burst: 10 };
  expect(await one.limits?.spend([{ ...limit, count: 4, agoMs: 0 }])).toEqual([6]);
  expect(await other.limits?.spend([{ ...limit, count: 8, agoMs: 0 }])).toEqual([-2]);
  await clock.skip(3_000);
  expect(
    await one.limits?.spend([
      { ...limit, count: 1, agoMs: 2_000 },
      { ...limit, name: 'verify key_2', count: 1, agoMs: 500 },
    ]),
  ).toEqual([0, 9.5]);
});

test('a daemon that reports its use minutes late does not restore tokens that others took in the meantime', async () => {
  const { clock, stores } = await twoNodes();
  const [one, other] = stores;
  const limit = { name: 'rank key_1', perMinute: 60, burst: 100 };
  await clock.skip(120_000);
  await other.limits?.spend([{ ...limit, count: 100, agoMs: 0 }]);
  expect(await one.limits?.spend([{ ...limit, count: 1, agoMs: 90_000 }])).toEqual([-1]);
  expect(await other.limits?.takeShared([limit])).toMatchObject([{ isAllowed: false }]);
});

test('the record of a limit is removed once the limit is full again, however long that takes', async () => {
  const { address, clock, stores } = await twoNodes();
  const [{ limits }] = stores;
  const small = { name: 'place key_1 42', perMinute: 60, burst: 10 };
  const large = { name: 'verify key_1', perMinute: 1, burst: 100 }; // full again after 100 minutes
  await limits?.spend([small, large].map((limit) => ({ ...limit, count: limit.burst, agoMs: 0 })));
  const storedLimits = async () => {
    await limits?.forgetFullLimits();
    return (await onServer(address, 'SELECT name FROM rankd.limit_counts')).map(({ name }) => name);
  };
  expect(await storedLimits()).toHaveLength(2);
  await clock.skip(10_000);
  expect(await storedLimits()).toEqual([large.name]);
  await clock.skip(99 * 60_000);
  expect(await storedLimits()).toEqual([large.name]);
  await clock.skip(60_000);
  expect(await storedLimits()).toEqual([]);
});

test('two daemons together admit as much as one: changes exactly, and verifications once they have synchronized', async () => {
  const { clock, stores } = await twoNodes();
  const config = { limits: { rankPerMinute: 60, rankBurst: 5, placePerMinute: 60, verifyPerMinute: 10 } };
  const [east, west] = [
    await openTestApp({ store: stores[0], clock, config }),
    await openTestApp({ store: stores[1], clock, config }),
  ];
  onTestFinished(async () => {
    await Promise.all([east.close(), west.close()]);
  });
  const key = await east.createKey({ places: [place] });
  const rank = (app: typeof east, rankeeId: number) => app.rank(key, { rankeeId });
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) => rank(index % 2 ? east : west, 900 + index)),
  );
  expect(answers.filter((answer) => codeOf(answer) === 'too_many_requests')).toHaveLength(7);
  const refused = answers.find((answer) => codeOf(answer) === 'too_many_requests');
  expect(refused?.headers).toMatchObject({ ratelimit: expect.stringContaining('r=0') });

  for (let count = 0; count < 10; count += 1) expect(await east.verify(key)).toMatchObject({ status: 200 });
  expect(await west.verify(key)).toMatchObject({ status: 200 });
  await expect
    .poll(async () => {
      await clock.advance(250);
      return codeOf(await west.verify(key));
    })
    .toBe('too_many_requests');
});
