import { expect, test } from 'vitest';
import { MemberTurns } from '../../../src/usecases/change/member-turns.ts';
import { QueuePosition } from '../../../src/usecases/change/queue-position.ts';
import { openTestApp } from '../../support/open-test-app.ts';

const rankeeId = 7;

test('who arrived keeps its place, whoever of another process comes after', async () => {
  await using world = await openTestApp();
  const { store } = world;
  await using place = new QueuePosition(
    { turns: new MemberTurns(), store, holder: 'a', deadlineMs: 20_000, platform: world.app.platform },
    { rankeeId, lane: 'test' },
  );
  expect(await place.isNext()).toBe(true);
  await store.takeTicket({ rankeeId, holder: 'b', lifeMs: 20_000 });
  expect(await place.isNext()).toBe(true);
  await place.hold();
  expect(await place.isNext()).toBe(true);
});

test('a ticket that could not be had is told to who asks for the place, and harms nobody else', async () => {
  await using world = await openTestApp();
  const store = { ...world.store, takeTicket: async () => Promise.reject(new Error('the disk is full')) };
  const app = { turns: new MemberTurns(), store, holder: 'a', deadlineMs: 20_000, platform: world.app.platform };
  using before = app.turns.arrive(rankeeId, 'test'); // whoever comes now must wait
  expect(before.isFirst).toBe(true);
  {
    await using gone = new QueuePosition(app, { rankeeId, lane: 'test' });
    await new Promise((resolve) => setImmediate(resolve)); // whoever waited has given up: nobody asks
    expect(gone).toBeDefined();
  }
  await using place = new QueuePosition(app, { rankeeId, lane: 'test' });
  await expect(place.isNext()).rejects.toThrow('the disk is full');
});
