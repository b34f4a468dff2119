import { expect, test } from 'vitest';
import { MemberTurns } from '../../../src/usecases/change/member-turns.ts';
import { QueuePosition } from '../../../src/usecases/change/queue-position.ts';
import { openTestApp, type TestApp } from '../../support/open-test-app.ts';
import { secondEngine } from '../../support/store-of-app.ts';

const rankeeId = 7;

function callFor({ app }: TestApp, ms: number) {
  return { signal: AbortSignal.timeout(ms), deadlineAt: app.clock.monotonic() + ms, lane: 'test' };
}

test('a change stays ahead of later ones on a different node', async () => {
  await using world = await openTestApp();
  const other = await secondEngine(world.dataDir, world.app.clock).openStore();
  await using position = new QueuePosition(world.app, { rankeeId, lane: 'test' });
  await position.waitForTurn(callFor(world, 1_000));
  await other.enqueue(rankeeId);
  await expect(position.waitForTurn(callFor(world, 1_000))).resolves.toBeUndefined();
  await using later = new QueuePosition({ ...world.app, turns: new MemberTurns() }, { rankeeId, lane: 'test' });
  await expect(later.waitForTurn(callFor(world, 150))).rejects.toThrow();
  await other.close();
  await expect(later.waitForTurn(callFor(world, 1_000))).resolves.toBeUndefined();
});

test('if joining the queue fails, only the waiting caller gets the error', async () => {
  await using world = await openTestApp();
  const store = { ...world.store, enqueue: async () => Promise.reject(new Error('the disk is full')) };
  const app = { ...world.app, turns: new MemberTurns(), store };
  const before = app.turns.enqueue(rankeeId, 'test'); // makes later changes wait
  expect(before.isFirst).toBe(true);
  {
    await using _gone = new QueuePosition(app, { rankeeId, lane: 'test' });
    await new Promise((resolve) => setImmediate(resolve)); // joining fails while no caller waits for its turn
  }
  await using position = new QueuePosition(app, { rankeeId, lane: 'test' });
  before[Symbol.dispose]();
  await expect(position.waitForTurn(callFor(world, 1_000))).rejects.toThrow('the disk is full');
});
