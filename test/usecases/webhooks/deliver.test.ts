import { expect, test } from 'vitest';
import {
  addressFrom,
  disableWebhook,
  enableWebhook,
  setWebhook,
} from '../../../src/usecases/webhooks/edit-webhooks.ts';
import { eventsToRedeliver, redeliver } from '../../../src/usecases/webhooks/view-webhooks.ts';
import { day, FakeTargets, hour, openDelivery } from './scene.ts';

async function scene() {
  let targets!: FakeTargets;
  const opened = await openDelivery((clock) => {
    targets = new FakeTargets(clock);
    return targets;
  });
  return { ...opened, targets };
}

const down = { status: 503 };

test('a failed event is retried after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h, plus or minus 20 %, under the same id', async () => {
  const { add, refuse, pass, targets } = await scene();
  await add('bot', 'https://bot.example/x');
  targets.answer = () => down;
  await refuse(1);
  await pass(4.5 * day);
  const times = targets.sent.map(({ at }) => at);
  const waits = times.slice(1).map((at, index) => (at - (times[index] ?? 0)) / 1000);
  const planned = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
  for (const [index, seconds] of planned.entries()) {
    expect(waits[index]).toBeGreaterThanOrEqual(seconds * 0.8);
    expect(waits[index]).toBeLessThanOrEqual(seconds * 1.2 + (seconds > 300 ? 600 : 1));
  }
  expect(new Set(targets.sent.map(({ id }) => id)).size).toBe(1);
});

test('a dead target gets few requests however many events wait, and all events in order once it responds', async () => {
  const { add, refuse, clock, pass, targets, find } = await scene();
  await add('bot', 'https://bot.example/x');
  targets.answer = () => down;
  for (let member = 1; member <= 60; member += 1) await refuse(member);
  await pass(2 * day);
  expect(targets.sent.length).toBeLessThan(40);
  targets.sent.length = 0;
  targets.answer = () => ({ status: 204 });
  await pass(day);
  await clock.advance(8_000);
  const arrived = targets.members('bot.example');
  expect(new Set(arrived).size).toBe(60);
  const late = arrived.filter((member) => (member ?? 0) > 10);
  expect(late).toEqual(late.toSorted((a, b) => (a ?? 0) - (b ?? 0)));
  expect(await find('bot')).toMatchObject({ failedTries: 0, state: 'enabled' });
});

test('after three tries, a failing event no longer delays later ones, and an event that the target rejects is given up', async () => {
  const { add, refuse, pass, targets, store, find } = await scene();
  const { id: webhookId } = await add('bot', 'https://bot.example/x');
  targets.answer = (_, member) => (member === 2 ? { status: 500 } : member === 4 ? { status: 422 } : { status: 204 });
  for (const member of [1, 2, 3, 4, 5]) await refuse(member);
  await pass(hour / 2);
  expect(new Set(targets.members('bot.example'))).toEqual(new Set([1, 2, 3, 4, 5]));
  expect(targets.members('bot.example').filter((member) => member === 4)).toHaveLength(3);
  const deliveries = await store.listDeliveries({ webhookId, oldestFirst: true, limit: 9 });
  expect(deliveries.map(({ state }) => state)).toEqual(['delivered', 'waiting', 'delivered', 'failed', 'delivered']);
  expect(await find('bot')).not.toHaveProperty('failingSince');
});

test('an alarm overtakes all waiting refusals, and can be redelivered', async () => {
  const { add, refuse, append, pass, targets, app } = await scene();
  await add('bot', 'https://bot.example/x', { events: ['all'] });
  targets.answer = () => ({ status: 500 });
  await refuse(0);
  await pass(1_000);
  for (let member = 1; member <= 40; member += 1) await refuse(member);
  await append('key.pause', { reason: 'demotions' });
  targets.answer = () => ({ status: 204 });
  await pass(60_000);
  const types = () => targets.sent.map(({ event }) => event.type);
  expect(types()).toEqual(['rank.refused', 'key.paused', ...Array(41).fill('rank.refused')]);
  const { sequence = 0 } = targets.sent[1]?.event.data ?? {};
  const events = await eventsToRedeliver(app, { name: 'bot', sequences: [sequence] });
  await redeliver(app, { name: 'bot', events, by: 'cli:ann@host' });
  await pass(1_000);
  expect(types().at(-1)).toBe('key.paused');
});

test('a hanging target does not delay others', async () => {
  const { add, refuse, clock, targets } = await scene();
  await add('slow', 'https://slow.example/x');
  await add('quick', 'https://quick.example/x');
  targets.answer = (host) => (host === 'slow.example' ? 'hang' : { status: 204 });
  const delays: number[] = [];
  for (let member = 1; member <= 20; member += 1) {
    const before = clock.now();
    await refuse(member);
    await clock.advance(1_000);
    const found = targets.sent.find(
      ({ host, event }) => host === 'quick.example' && event.data.change?.rankeeId === member,
    );
    delays.push((found?.at ?? Number.POSITIVE_INFINITY) - before);
  }
  expect(delays.toSorted((a, b) => a - b)[10]).toBeLessThan(1_000);
  expect(targets.members('slow.example').length).toBeLessThanOrEqual(2);
});

test('at most eight targets are called at once', async () => {
  const { add, refuse, clock, targets } = await scene();
  for (let index = 0; index < 10; index += 1) await add(`bot-${index}`, `https://bot-${index}.example/x`);
  targets.answer = () => 'hang';
  await refuse(1);
  await clock.advance(2_000);
  expect(targets.sent).toHaveLength(8);
  await clock.advance(20_000);
  expect(new Set(targets.sent.map(({ host }) => host)).size).toBe(10);
});

test('eight targets with a backlog do not delay others', async () => {
  const { add, refuse, clock, targets } = await scene();
  for (let index = 0; index < 8; index += 1) await add(`a-${index}`, `https://a-${index}.example/x`);
  for (let member = 1; member <= 150; member += 1) await refuse(member);
  await clock.advance(1_000);
  await add('late', 'https://late.example/x');
  await refuse(1_000);
  await clock.advance(6_000);
  expect(targets.members('late.example')).toEqual([1_000]);
  await clock.advance(15_000);
  expect(targets.members('a-0.example')).toHaveLength(151);
});

test('a webhook whose address changes between two tries gets the event at once, under the same id', async () => {
  const { add, refuse, clock, targets, store, pass, find } = await scene();
  await add('bot', 'https://wrong.example/x');
  targets.answer = (host) => (host === 'wrong.example' ? down : { status: 204 });
  await refuse(1);
  await pass(20_000);
  const target = addressFrom('https://right.example/x');
  await setWebhook({ store, clock }, { name: 'bot', target, by: 'cli:ann@host' });
  await clock.advance(1_000);
  expect(targets.members('right.example')).toEqual([1]);
  expect(new Set(targets.sent.map(({ id }) => id)).size).toBe(1);
  expect(await find('bot')).not.toHaveProperty('failingSince');
});

test('an event from a group with thousands of roles stays below 20 KB and gives their total number', async () => {
  const { add, refuse, clock, targets } = await scene();
  await add('bot', 'https://bot.example/x');
  const ids = Array.from({ length: 5_000 }, (_, index) => 70_000_000_000 + index);
  const roles = ids.map((id) => ({ id, name: 'x'.repeat(100), rank: 1 }));
  await refuse(1, { rolesBefore: ids, rolesAfter: ids, roles });
  await clock.advance(2_000);
  const [{ request: { body = '' } = {}, event } = {}] = targets.sent;
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(20_000);
  expect(event?.data.change).toMatchObject({ rolesBefore: ids.slice(0, 100), rolesBeforeCount: 5_000 });
});

test('a 503 delays the next try as long as its Retry-After requests, and a 410 disables the webhook at once', async () => {
  const { add, refuse, pass, targets, find, store } = await scene();
  await add('bot', 'https://bot.example/x');
  await add('watcher', 'https://watcher.example/x', { events: ['alarms'] });
  targets.answer = (host) =>
    host === 'bot.example'
      ? { status: 503, header: (name) => (name === 'retry-after' ? '7200' : undefined) }
      : { status: 204 };
  await refuse(1);
  await pass(1.8 * hour);
  expect(targets.members('bot.example')).toHaveLength(1);
  targets.answer = (host) => ({ status: host === 'bot.example' ? 410 : 204 });
  await pass(0.4 * hour);
  expect(targets.members('bot.example')).toHaveLength(2);
  expect(await find('bot')).toMatchObject({ state: 'disabled', why: expect.stringContaining('410') });
  expect((await store.listAudit({ limit: 1 }))[0]).toMatchObject({ action: 'webhook.disable', by: 'daemon' });
  expect(targets.sent.filter(({ host }) => host === 'watcher.example').map(({ event }) => event.type)).toEqual([
    'webhook.disabled',
  ]);
});

test('a target is disabled after five days without success; once enabled again, it gets the events of the last seven days', async () => {
  const { add, refuse, clock, pass, targets, find, store } = await scene();
  await add('bot', 'https://bot.example/x');
  targets.answer = () => down;
  await refuse(1);
  await pass(4.9 * day);
  expect(await find('bot')).toMatchObject({ state: 'enabled' });
  await refuse(2);
  await pass(2 * day);
  expect(await find('bot')).toMatchObject({ state: 'disabled', why: expect.stringContaining('5 days') });
  await refuse(3);
  await pass(3 * day);
  targets.sent.length = 0;
  targets.answer = () => ({ status: 204 });
  const enabled = await enableWebhook({ store, clock }, { name: 'bot', skipsBacklog: false, by: 'cli:ann@host' });
  expect(enabled).toEqual({ leftOut: 1 });
  await pass(2 * day);
  expect(targets.members('bot.example').filter((member) => member !== undefined)).toEqual(
    expect.arrayContaining([2, 3]),
  );
  expect(targets.members('bot.example')).not.toContain(1);
});

test('events older than seven days are skipped, and one event reports the skip', async () => {
  const { add, refuse, clock, pass, targets, end, start } = await scene();
  await add('bot', 'https://bot.example/x');
  await end();
  for (let member = 101; member <= 220; member += 1) await refuse(member);
  await pass(8 * day);
  await refuse(3);
  start();
  await clock.advance(10_000);
  expect(targets.sent.map(({ event }) => event.type)).toEqual(['rank.refused', 'events.skipped']);
  expect(targets.members('bot.example')[0]).toBe(3);
  expect(targets.sent[1]?.event.data).toMatchObject({ detail: { count: 120 } });
});

test.each([
  ['events older than seven days', false, { leftOut: 2, members: [3] }],
  ['all waiting events', true, { leftOut: 3, members: [] }],
])('enabling a webhook reports how many events are skipped: %s', async (_, skipsBacklog, expected) => {
  const { add, refuse, clock, pass, targets, store } = await scene();
  await add('bot', 'https://bot.example/x');
  const by = 'cli:ann@host';
  await disableWebhook({ store, clock }, { name: 'bot', by });
  await refuse(1);
  await refuse(2);
  await pass(8 * day);
  await refuse(3);
  const { leftOut } = await enableWebhook({ store, clock }, { name: 'bot', skipsBacklog, by });
  await clock.advance(10_000);
  expect({ leftOut, members: targets.members('bot.example').filter((one) => one !== undefined) }).toEqual(expected);
  const skipped = targets.sent.filter(({ event }) => event.type === 'events.skipped');
  expect(skipped.map(({ event }) => event.data)).toMatchObject([{ by, detail: { count: leftOut } }]);
});

test('a webhook gets no events from before its selection of events was changed', async () => {
  const { add, refuse, clock, targets, store, end, start } = await scene();
  await add('bot', 'https://bot.example/x', { events: ['keys'] });
  await refuse(1);
  await clock.advance(2_000);
  await end();
  await setWebhook({ store, clock }, { name: 'bot', events: ['refusals'], by: 'cli:ann@host' });
  await refuse(2);
  start();
  await clock.advance(2_000);
  expect(targets.members('bot.example')).toEqual([2]);
});
