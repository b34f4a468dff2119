import { expect, onTestFinished, test } from 'vitest';
import type { Key, KeyRules, Scope } from '../../src/core/model.ts';
import { createDiscordKey } from '../../src/usecases/keys/keys.ts';
import { discordPublicKey, discordIds as ids, interactionOf, signed } from '../support/discord-interactions.ts';
import { type FakeDiscord, startFakeDiscord } from '../support/fake-discord.ts';
import { openTestApp, roles, type TestApp, type TestAppOptions } from '../support/open-test-app.ts';

const by = 'cli:ann@host';

interface Scene {
  app: TestApp;
  discord: FakeDiscord;
  /** The address that Discord posts to. */
  url: string;
  /** What the person reads in the end. */
  say(
    name: string,
    options?: Record<string, string>,
    rest?: Partial<Parameters<FakeDiscord['say']>[1]>,
  ): Promise<string>;
  key(name: string, rest?: { rules?: KeyRules; scopes?: Scope[]; mode?: 'live' | 'test' }): Promise<Key>;
}

/** A daemon whose role `hr` has the key hr, and `trainers` the key trainers, which only promotes. */
async function open({ config = {}, ...options }: TestAppOptions = {}): Promise<Scene> {
  const fake = await startFakeDiscord();
  onTestFinished(() => fake[Symbol.asyncDispose]());
  const rows = [
    { role: ids.hr, key: 'hr', at: '' },
    { role: ids.trainers, key: 'trainers', at: '' },
  ];
  const { application, server } = ids;
  const discord = { application, server, publicKey: discordPublicKey, rows, apiBaseUrl: fake.apiBaseUrl };
  const app = await openTestApp({ ...options, config: { discord, ...config } });
  onTestFinished(() => app.close());
  const url = `${app.url}/discord/interactions`;
  const key: Scene['key'] = (name, rest = {}) => {
    const request = { name, mode: 'live', scopes: ['verify', 'rank', 'suspend'], ...rest } as const;
    return createDiscordKey(app.app, { ...request, scopes: [...request.scopes], by });
  };
  await key('hr');
  await key('trainers', { rules: { direction: 'promote', maxRank: 20 } });
  return {
    ...{ app, url, key, discord: fake.discord },
    say: (name, given, rest) => fake.discord.say(url, { name, ...(given && { options: given }), ...rest }),
  };
}

test('a ping is answered, and so is no request that Discord did not sign just now', async () => {
  const { discord, url, app } = await open();
  const ping = JSON.stringify({ type: 1, token: 't' });
  expect(await discord.post(url, ping)).toMatchObject({ status: 200, response: { type: 1 } });
  const good = signed(ping);
  const flipped = good['x-signature-ed25519']?.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) ?? '';
  const bad: Array<[Record<string, string>, string]> = [
    [{}, ping],
    [{ ...good, 'x-signature-ed25519': '' }, ping],
    [{ ...good, 'x-signature-ed25519': 'zz'.repeat(64) }, ping],
    [{ ...good, 'x-signature-ed25519': flipped }, ping],
    [{ ...good, 'x-signature-ed25519': `${good['x-signature-ed25519']}00` }, ping],
    [{ ...good, 'x-signature-timestamp': '1e9' }, ping],
    [{ ...good, 'x-signature-timestamp': String(Number(good['x-signature-timestamp']) + 1) }, ping],
    [good, ping.replace('"t"', '"u"')],
    [signed(ping, Date.now() - 310_000), ping],
    [signed(ping, Date.now() + 310_000), ping],
  ];
  for (const [headers, body] of bad) {
    const { status, response } = await discord.post(url, body, headers);
    expect({ status, response }, JSON.stringify(headers)).toMatchObject({
      ...{ status: 401, response: { success: false, code: 'invalid_key' } },
    });
  }
  for (const signedAt of [Date.now() - 290_000, Date.now() + 290_000])
    expect(await discord.post(url, ping, signed(ping, signedAt))).toMatchObject({ status: 200 });
  await app.stop();
  const log = app.logLines.join('\n');
  for (const why of ['has no signature', 'does not fit', 'more than 5 minutes off']) expect(log).toContain(why);
});

test('wrong signatures use up what their address has for failed authentication, and never keep a right one out', async () => {
  const { discord, url, app, say } = await open({ config: { limits: { failedAuthPerMinute: 3 } } });
  const body = JSON.stringify(interactionOf({ name: 'link' }));
  for (let tries = 0; tries < 6; tries += 1)
    expect(await discord.post(url, body, signed('other'))).toMatchObject({ status: 401 });
  expect(await app.verify('rk_live_nothing')).toMatchObject({ status: 429 });
  expect(await say('link')).toContain('You are not linked');
});

test('a signed body that is not JSON, or lacks a needed field, is a bad request; unknown fields and types are not', async () => {
  const { discord, url } = await open();
  const post = (content: unknown) => {
    const body = typeof content === 'string' ? content : JSON.stringify(content);
    return fetch(url, { method: 'POST', headers: signed(body), body });
  };
  const whole = interactionOf({ name: 'promote' });
  for (const content of ['', '{', '[]', 'null', '{}', '{"type":"1"}', { ...whole, token: 7 }, { ...whole, data: null }])
    expect((await post(content)).status, JSON.stringify(content)).toBe(400);
  for (const field of ['id', 'application_id', 'token', 'data'])
    expect(await (await post({ ...whole, [field]: undefined })).json()).toMatchObject({ code: 'invalid_request' });
  expect((await post('x'.repeat(70_000))).status).toBe(413);
  for (const type of [3, 5, 99])
    expect(await discord.post(url, JSON.stringify({ type, token: 't' }))).toMatchObject({
      ...{ status: 200, response: { type: 4, data: { content: 'rankd has slash commands only.', flags: 64 } } },
    });
});

test('commands of another server, another application or a direct message are refused in one sentence', async () => {
  const { discord, url, app } = await open();
  const others = [
    { guild_id: '2200000000000000009' },
    { guild_id: undefined },
    { application_id: '1100000000000000009' },
  ];
  for (const fields of [...others, { member: undefined, user: { id: ids.ann } }]) {
    const command = { name: 'promote', options: { user: '1001' }, fields };
    expect((await discord.interact(url, command)).response).toMatchObject({
      ...{
        type: 4,
        data: { content: expect.stringMatching(/^This is not the Discord server that rankd works for/), flags: 64 },
      },
    });
    const typing = await discord.interact(url, { ...command, name: 'setrank', options: { rank: '' }, focused: 'rank' });
    expect(typing.response).toEqual({ type: 8, data: { choices: [] } });
  }
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
  expect(await app.store.listChanges({ limit: 9 })).toEqual([]);
});

test('a person without a role of any row may do nothing; of several roles, the first row counts', async () => {
  const { say, app } = await open();
  expect(await say('promote', { user: '1001' }, { roles: ['3300000000000000099'] })).toBe(
    'None of your roles may change ranks.',
  );
  expect(await say('demote', { user: '1001' }, { roles: [ids.trainers] })).toMatch(/^This key only ranks up|may only/);
  expect(await say('promote', { user: '1001' }, { roles: [ids.trainers, ids.hr] })).toBe(
    'Member 1001 is now Officer (rank 20), was Trainee (rank 10). (simulated group)',
  );
  const [change] = await app.store.listChanges({ limit: 1 });
  expect(change).toMatchObject({ keyId: (await app.store.findKey('hr'))?.id, rankerId: 0, rankerName: 'Annie' });
});

test('a row that names the key of a game is refused at the start, whatever its name; a missing key only refuses commands', async () => {
  const { app, say, discord } = await open();
  await app.createKey({ name: 'game' });
  const rows = [{ role: ids.hr, key: 'game', at: 'rankd.yaml:9:40' }];
  const config = { ...app.live.current, discord: { ...required(app), rows } };
  await app.stop();
  const started = openTestApp({ dataDir: app.dataDir, config: { discord: config.discord } });
  await expect(started).rejects.toMatchObject({
    ...{ code: 'config_invalid', message: expect.stringContaining('rankd.yaml:9:40 discord.commands[0].key') },
  });
  const missing = [{ role: ids.hr, key: 'nothing', at: '' }];
  const again = await openTestApp({ dataDir: app.dataDir, config: { discord: { ...config.discord, rows: missing } } });
  onTestFinished(() => again.close());
  const command = { name: 'promote', options: { user: '1001' } };
  expect(await discord.say(`${again.url}/discord/interactions`, command)).toContain(
    '"nothing" behind your role can\'t be used',
  );
  expect(say).toBeDefined();
});

function required({ app }: TestApp) {
  const { discord } = app;
  if (discord === undefined) throw new Error('no section discord');
  return discord;
}
