import { expect, test } from 'vitest';
import { addressHash } from '../../../src/usecases/webhooks/send.ts';
import { FakeDiscord } from '../../support/fake-discord.ts';
import { day, discordAddress, openDelivery } from './scene.ts';

async function scene() {
  let discord!: FakeDiscord;
  const opened = await openDelivery((clock) => {
    discord = new FakeDiscord(clock);
    return discord.sender;
  });
  return { ...opened, discord };
}

test('500 demotions at once become at most five messages after the alarm, which alone notifies, and exceed no limit', async () => {
  const { add, demote, append, clock, discord } = await scene();
  await add('log', discordAddress, { mention: '1482005551234567890' });
  for (let member = 1; member <= 500; member += 1) await demote(1_000 + member);
  await append('key.pause', { reason: 'it demoted 500 members' });
  await clock.advance(2_000);
  expect(discord.messages[0]).toMatchObject({
    ...{ content: '<@&1482005551234567890>', allowed_mentions: { parse: [], roles: ['1482005551234567890'] } },
    embeds: [{ title: expect.stringContaining('A key is paused') }],
  });
  expect(discord.messages[0]).not.toHaveProperty('flags');
  await clock.advance(60_000);
  const log = discord.messages.slice(1);
  expect(log.length).toBeLessThanOrEqual(5);
  expect(log[0]?.embeds[0]?.title).toContain('500 demotions in 1 s');
  expect(log.at(-1)?.embeds[0]?.description).toMatch(/and 400 more: rankd history list --since /);
  for (const { flags, allowed_mentions } of log)
    expect({ flags, allowed_mentions }).toEqual({ flags: 4096, allowed_mentions: { parse: [] } });
  expect(discord.violations).toEqual([]);
});

test('an alarm during a burst overtakes the collected changes, and is sent once', async () => {
  const { add, demote, append, clock, discord } = await scene();
  await add('log', discordAddress);
  const titles = () => discord.messages.map(({ embeds }) => embeds[0]?.title ?? '');
  for (let member = 1; member <= 60; member += 1) await demote(1_000 + member);
  await clock.advance(500); // still within the first second of the burst
  await append('key.pause', { reason: 'it demoted 60 members' });
  await clock.advance(1_000);
  expect(titles()[0]).toContain('A key is paused');
  await clock.advance(15_000); // the channel is quiet again
  const before = titles().length;
  discord.duringNextRequest = () => append('key.pause', { reason: 'again' });
  for (let member = 1; member <= 500; member += 1)
    await demote(2_000 + member, { rankeeName: `Member ${'x'.repeat(60)}` });
  await clock.advance(30_000);
  const later = titles().slice(before);
  expect(later[1]).toContain('A key is paused');
  expect(later.filter((title) => title.includes('A key is paused'))).toHaveLength(1);
  expect(later.length).toBeGreaterThanOrEqual(4);
  expect(discord.violations).toEqual([]);
});

test('after a digest, a single change waits ten seconds, not a minute', async () => {
  const { add, demote, clock, discord } = await scene();
  await add('log', discordAddress);
  for (let member = 1; member <= 60; member += 1) await demote(1_000 + member);
  await clock.advance(3_000);
  const before = discord.messages.length;
  expect(before).toBeGreaterThan(0);
  await demote(9_000);
  await clock.advance(12_000);
  expect(discord.messages).toHaveLength(before + 1);
});

test('500 changes over 100 s become at most five messages, and a later single change is sent within two seconds', async () => {
  const { add, demote, append, clock, discord } = await scene();
  await add('log', discordAddress);
  for (let second = 0; second < 100; second += 1) {
    for (let index = 0; index < 5; index += 1)
      await demote(1_000 + second * 5 + index, { rankeeName: `Member_${second}_of_twenty` });
    await clock.advance(1_000);
  }
  await append('key.pause', { reason: 'it demoted 500 members' });
  const before = discord.messages.length;
  await clock.advance(2_000);
  expect(discord.messages.slice(before)).toMatchObject([
    { embeds: [{ title: 'A key is paused', description: expect.stringContaining('reason: it demoted 500 members') }] },
  ]);
  await clock.advance(60_000);
  expect(discord.messages.length - 1).toBeLessThanOrEqual(5);
  const reported = discord.messages.flatMap(({ embeds }) =>
    embeds.map(({ title }) => Number(/^(\d+) demotions/.exec(title)?.[1] ?? 1)),
  );
  expect(reported.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(500);
  await clock.advance(20_000);
  const late = discord.messages.length;
  await demote(9_000);
  await clock.advance(2_000);
  expect(discord.messages.slice(late).map(({ embeds }) => embeds.length)).toEqual([1]);
  expect(discord.violations).toEqual([]);
});

test('the message about a superseded suspension reports that someone else changed the member', async () => {
  const { add, append, clock, discord } = await scene();
  await add('log', discordAddress);
  await append('suspension.supersede', { rankeeName: 'Ann' });
  await clock.advance(3_000);
  expect(discord.messages[0]?.embeds[0]?.title).toBe('A suspension is over: someone else changed the member');
});

test('the message about the end of a temporary rank does not call it a suspension', async () => {
  const { add, append, clock, discord } = await scene();
  await add('log', discordAddress);
  await append('suspension.end', { kind: 'temporary' });
  await clock.advance(3_000);
  expect(discord.messages[0]?.embeds[0]?.title).toBe('A temporary rank or role is over');
});

test('a few changes are sent in one message, with an embed each', async () => {
  const { add, demote, refuse, clock, discord } = await scene();
  await add('log', discordAddress);
  await demote(1001, { rankeeName: 'Newcomer', rankerId: 1003, rankerName: 'Builder', reason: 'spam' });
  await refuse(1002);
  await clock.advance(5_000);
  expect(discord.messages).toHaveLength(1);
  const [first] = discord.messages[0]?.embeds ?? [];
  expect(first).toMatchObject({
    ...{ title: 'Newcomer demoted', color: 16098851, url: 'https://www.roblox.com/users/1001/profile' },
    ...{
      description: 'Officer (20) → **Trainee (10)**',
      footer: { text: expect.stringMatching(/chg_.* · event \d+$/) },
    },
    fields: [
      { name: 'By', value: '[Builder](https://www.roblox.com/users/1003/profile)', inline: true },
      { name: 'From', value: 'key\\_main, place 42', inline: true },
      { name: 'Why', value: 'spam' },
    ],
  });
});

test.each([
  ['@everyone', '\\@everyone'],
  ['[x](javascript:alert(1))', '\\[x\\]\\(javascript\\:alert\\(1\\)\\)'],
  ['_x_', '\\_x\\_'],
  ['\u202eevil\u200b', 'evil'],
  [`a${'\u0301'.repeat(1000)}`, 'a\u0301\u0301'],
  ['<@&123>', '\\<\\@&123\\>'],
  ['discord.gg/x', 'discord\\.gg/x'],
])('the name %j appears as plain text on Discord', async (name, shown) => {
  const { add, demote, clock, discord } = await scene();
  await add('log', discordAddress);
  await demote(1001, { rankeeName: name, rankerName: name, rankerId: 5, reason: name });
  await clock.advance(5_000);
  expect(discord.messages[0]?.embeds[0]?.title).toBe(`${shown} demoted`);
  expect(discord.messages[0]?.allowed_mentions).toEqual({ parse: [] });
  expect(discord.violations).toEqual([]);
});

test('the longest texts, with emoji cut at any position, stay within the limits', async () => {
  const { add, demote, clock, discord } = await scene();
  await add('log', discordAddress);
  for (let shift = 0; shift < 5; shift += 1) {
    const name = `${'a'.repeat(shift)}${'👩‍🚀'.repeat(300)}`;
    await demote(1001 + shift, { rankeeName: name, rankerName: '*'.repeat(900), rankerId: 5, reason: '_'.repeat(200) });
  }
  await clock.advance(5_000);
  expect(discord.messages.length).toBeGreaterThan(0);
  expect(discord.violations).toEqual([]);
});

test('the wait that a 429 requests is respected, whether global or not, and does not count as a failure', async () => {
  const { add, refuse, clock, discord, find } = await scene();
  await add('log', discordAddress);
  discord.globalSeconds = 64.57;
  await refuse(1);
  await clock.advance(64_000);
  expect(discord.messages).toEqual([]);
  await clock.advance(3_000);
  expect(discord.messages).toHaveLength(1);
  expect(await find('log')).toMatchObject({ failedTries: 0 });
  for (let member = 2; member <= 30; member += 1) {
    await refuse(member);
    await clock.advance(1_100);
  }
  await clock.advance(20_000);
  expect(discord.violations).toEqual([]);
});

test('an embed that Discord rejects is sent again as one plain line', async () => {
  const { add, demote, clock, discord, find } = await scene();
  await add('log', discordAddress);
  const answer = discord.answer.bind(discord);
  discord.answer = (method, url, body) =>
    JSON.parse(body).embeds === undefined ? answer(method, url, body) : { status: 400, headers: {}, body: '{}' };
  await demote(1001, { rankeeName: 'Newcomer' });
  await clock.advance(5_000);
  expect(discord.messages.map(({ content }) => content)).toEqual([
    expect.stringMatching(/^⬇ Newcomer \(1001\) Officer \(20\) → Trainee \(10\) · \d+$/),
  ]);
  expect(await find('log')).toMatchObject({ failedTries: 0, state: 'enabled' });
});

test('a webhook that was deleted in Discord is disabled at once, and never called again', async () => {
  const { add, refuse, clock, pass, discord, find } = await scene();
  await add('log', discordAddress);
  discord.isDeleted = true;
  await refuse(1);
  await clock.advance(5_000);
  expect(await find('log')).toMatchObject({ state: 'disabled', why: 'the webhook was deleted in Discord' });
  discord.isDeleted = false;
  await pass(day);
  expect(discord.messages).toEqual([]);
});

test('after an outage of two days, the missed events are sent in one digest', async () => {
  const { add, refuse, pass, discord } = await scene();
  await add('log', discordAddress);
  discord.status = 502;
  for (const member of [1, 2, 3]) await refuse(member);
  await pass(2 * day);
  discord.status = undefined;
  await pass(1.5 * day); // the next attempt is at most 28.8 h later
  expect(discord.messages).toHaveLength(1);
  expect(discord.messages[0]?.embeds[0]).toMatchObject({ title: expect.stringContaining('3 refused') });
});

test('a webhook for games gets only the changes of games that send its address', async () => {
  const { add, demote, clock, discord } = await scene();
  await add('game-log', discordAddress, { events: [], isForGames: true });
  const change = { webhookHash: addressHash(discordAddress) };
  await demote(1001, change);
  await demote(1002, { webhookHash: addressHash(`${discordAddress}x`) });
  await demote(1003);
  await clock.advance(5_000);
  expect(discord.messages.flatMap(({ embeds }) => embeds.map(({ url }) => url))).toEqual([
    'https://www.roblox.com/users/1001/profile',
  ]);
});
