import { expect, test } from 'vitest';
import { OpenCloudPlatform } from '../../src/platforms/open-cloud.ts';
import { type FakeOpenCloud, sampleUsers, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { FastClock } from '../tools/fast-clock.ts';

const clock = new FastClock(40);
const calls = 300;

/**
 * Makes many concurrent reads of a member in two lanes, with a latency of 100 ms. Resolves with the proportion of 429
 * responses.
 */
async function burst(prepare: (fake: FakeOpenCloud) => void): Promise<number> {
  const fake = await startFakeOpenCloud({ clock, latencyMs: 100, limits: { memberships: 600 } });
  try {
    prepare(fake);
    const platform = new OpenCloudPlatform({ ...fake, clock });
    const { signal } = new AbortController();
    const deadlineAt = clock.monotonic() + 600_000;
    await Promise.all(
      Array.from({ length: calls }, (_, n) =>
        platform.getMember(sampleUsers.trainee, { signal, deadlineAt, lane: `${n % 2}` }),
      ),
    );
    const statuses = fake.journal.requests('memberships').map(({ status }) => status);
    return statuses.filter((status) => status === 429).length / statuses.length;
  } finally {
    await fake.close();
  }
}

test('in a long burst, a limit that no header reports refuses fewer than a twentieth of the calls', async () => {
  expect(
    await burst(({ budgets }) => {
      budgets.hidden = { burst: 12, perSecond: 4 };
    }),
  ).toBeLessThan(0.05);
});

test('in a long burst, no call is refused if the headers are correct', async () => {
  expect(
    await burst(({ budgets }) => {
      budgets.limits = { memberships: 50 };
      budgets.windowMs = 10_000;
    }),
  ).toBe(0);
});
