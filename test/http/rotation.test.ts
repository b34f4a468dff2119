import { describe, expect, test } from 'vitest';
import { rotateKey } from '../../src/usecases/keys/keys.ts';
import { operate } from '../contracts/store/samples.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { type Answer, openTestApp, place, type TestApp } from '../support/open-test-app.ts';

const hourMs = 3_600_000;

/** Creates the key `main` with two secrets, the older of which is valid for an hour. */
async function rotated({ expiresAt }: { expiresAt?: number } = {}) {
  const clock = new ManualClock(Date.UTC(2026, 0, 1, 12, 0, 0, 900));
  const app = await openTestApp({ clock });
  const old = await app.createKey(expiresAt === undefined ? {} : { expiresAt });
  const { secret } = await rotateKey(app.app, { key: 'main', overlapMs: hourMs, by: 'cli:ann@host' });
  return { app, clock, old, current: secret, [Symbol.asyncDispose]: () => app.close() };
}

function retirement({ headers }: Answer): Array<string | undefined> {
  return [headers['deprecation'], headers['sunset']].map((value) => value?.toString());
}

/** Returns the time and place at which each secret was last used, newest secret first. */
async function uses({ store }: TestApp) {
  const key = await store.findKey('main');
  return key?.secrets.map(({ lastUsedAt, lastPlaceId }) => [lastUsedAt, lastPlaceId]);
}

describe('while a rotation overlaps', () => {
  const announced = [`@${Date.UTC(2026, 0, 1, 12) / 1000}`, 'Thu, 01 Jan 2026 13:00:00 GMT'];

  test('responses to the old secret, including refusals, have the times of its rotation and expiry', async () => {
    await using system = await rotated();
    const { app, old } = system;
    const ranked = await app.rank(old);
    const answers = [await app.verify(old), ranked, await app.verify(old, 43)];
    const bad = await app.post(`/v1/ranker?placeid=${place}`, { key: old, body: {} });
    expect(answers.concat(bad).map(({ status }) => status)).toEqual([200, 200, 403, 400]);
    for (const answer of answers.concat(bad)) expect(retirement(answer)).toEqual(announced);
  });

  test('responses to the new secret have neither', async () => {
    await using system = await rotated();
    expect(retirement(await system.app.verify(system.current))).toEqual([undefined, undefined]);
  });

  test('a key that expires before the overlap ends is announced with the earlier time', async () => {
    await using system = await rotated({ expiresAt: Date.UTC(2026, 0, 1, 12, 30) });
    expect(retirement(await system.app.verify(system.old))[1]).toBe('Thu, 01 Jan 2026 12:30:00 GMT');
  });
});

test('responses to an expired secret reveal nothing about its rotation', async () => {
  await using system = await rotated();
  const { app, clock, old } = system;
  await operate(app.app).updateWorkspace({ active: false }, 'cli:ann@host');
  const suspended = await app.verify(old);
  await operate(app.app).updateWorkspace({ active: true }, 'cli:ann@host');
  await clock.advance(hourMs);
  for (const answer of [suspended, await app.verify(old)]) {
    expect(answer.status).toBe(401);
    expect(retirement(answer)).toEqual([undefined, undefined]);
  }
});

describe('the last use of each secret', () => {
  test('is saved within a minute with its place, and not by the request itself', async () => {
    await using system = await rotated();
    const { app, clock, old, current } = system;
    const start = clock.now();
    await app.verify(old);
    await clock.advance(1_000);
    await app.verify(old);
    await app.verify(current);
    expect(await uses(app)).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ]);
    await clock.advance(60_000);
    expect(await uses(app)).toEqual([
      [start + 1_000, place],
      [start + 1_000, place],
    ]);
  });

  test('does not include refused requests', async () => {
    await using system = await rotated();
    const { app, clock, old } = system;
    await app.verify(old, 43);
    await clock.advance(60_000);
    expect((await uses(app))?.[1]).toEqual([undefined, undefined]);
  });

  test('is saved when the daemon stops', async () => {
    const system = await rotated();
    await system.app.verify(system.old);
    await system.app.stop();
    await using next = await openTestApp({ dataDir: system.app.dataDir, clock: system.clock });
    expect((await uses(next))?.[1]).toEqual([system.clock.now(), place]);
  });

  test('is saved later if it could not be saved', async () => {
    await using system = await rotated();
    const { app, clock, old } = system;
    const { recordKeyUses } = app.store;
    app.store.recordKeyUses = () => Promise.reject(new Error('the disk is full'));
    const usedAt = clock.now();
    await app.verify(old);
    await clock.advance(60_000);
    app.store.recordKeyUses = recordKeyUses;
    await clock.advance(60_000);
    expect((await uses(app))?.[1]).toEqual([usedAt, place]);
  });
});
