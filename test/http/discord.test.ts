import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Key, KeyRules, Scope } from '../../src/core/model.ts';
import { Interactions } from '../../src/http/discord/interactions.ts';
import type { Exchange } from '../../src/http/route.ts';
import { Throttle } from '../../src/http/throttle.ts';
import type { CallContext } from '../../src/ports/index.ts';
import { declareConfigured } from '../../src/usecases/declare-configured.ts';
import { linkPerson } from '../../src/usecases/discord/discord-people.ts';
import { createDiscordKey } from '../../src/usecases/keys/keys.ts';
import { discordConfig, discordIds as ids, interactionOf, signed } from '../support/discord-interactions.ts';
import { type FakeDiscord, startFakeDiscord } from '../support/fake-discord.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestApp, roles, type TestApp, type TestAppOptions, testConfig } from '../support/open-test-app.ts';
import { holdWrites, platformWith } from '../support/platform-with.ts';

const by = 'cli:ann@host';

interface Scene {
  app: TestApp;
  discord: FakeDiscord;
  /** Makes Discord refuse connections. */
  closeDiscord(): PromiseLike<void>;
  /** The address to which Discord posts interactions. */
  url: string;
  runCommand(
    name: string,
    options?: Record<string, string>,
    rest?: Partial<Parameters<FakeDiscord['runCommand']>[1]>,
  ): Promise<string>;
  key(name: string, rest?: { rules?: KeyRules; scopes?: Scope[]; mode?: 'live' | 'test' }): Promise<Key>;
}

/** Starts a daemon with keys for two Discord roles: `hr`, and `trainers`, which only promotes, up to rank 20. */
async function open({ config = {}, ...options }: TestAppOptions = {}): Promise<Scene> {
  const fake = await startFakeDiscord();
  onTestFinished(() => fake[Symbol.asyncDispose]());
  const app = await openTestApp({ ...options, config: { discord: discordConfig(fake.apiBaseUrl), ...config } });
  const { clock } = options; // closing can wait for requests in flight, which needs a clock that advances
  onTestFinished(() => (clock instanceof ManualClock ? clock.passUntil(app.close()) : app.close()));
  const url = `${app.url}/discord/interactions`;
  const key: Scene['key'] = (name, rest = {}) => {
    const request = { name, mode: 'live', scopes: ['verify', 'rank', 'roles', 'suspend'], ...rest } as const;
    return createDiscordKey(app.app, { ...request, scopes: [...request.scopes], by });
  };
  await key('hr');
  await key('trainers', { rules: { direction: 'promote', maxRank: 20 } });
  return {
    ...{ app, url, key, discord: fake.discord, closeDiscord: () => fake[Symbol.asyncDispose]() },
    runCommand: (name, given, rest) =>
      fake.discord.runCommand(url, { name, ...(given && { options: given }), ...rest }),
  };
}

test('a ping is answered, and a request without a recent signature from Discord is refused', async () => {
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
  for (const why of ['has no Discord signature', 'does not match', 'more than 5 minutes off'])
    expect(log).toContain(why);
});

test('wrong signatures count against the limit of their address, but never block a valid signature', async () => {
  const { discord, url, app, runCommand } = await open({ config: { limits: { failedAuthPerMinute: 3 } } });
  const body = JSON.stringify(interactionOf({ name: 'link' }));
  for (let tries = 0; tries < 6; tries += 1)
    expect(await discord.post(url, body, signed('other'))).toMatchObject({ status: 401 });
  expect(await app.verify('rk_live_nothing')).toMatchObject({ status: 429 });
  expect(await runCommand('link')).toContain('You are not linked');
});

test('a signed body is a bad request if it is not JSON or lacks a required field, but not for an unknown field or type', async () => {
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
      ...{ status: 200, response: { type: 4, data: { content: 'rankd supports only slash commands.', flags: 64 } } },
    });
});

test('commands from another server, another application or a direct message are refused in one sentence', async () => {
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
        data: { content: expect.stringMatching(/^rankd is not set up for this Discord server/), flags: 64 },
      },
    });
    const typing = await discord.interact(url, { ...command, name: 'setrank', options: { rank: '' }, focused: 'rank' });
    expect(typing.response).toEqual({ type: 8, data: { choices: [] } });
  }
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
  expect(await app.store.listChanges({ limit: 9 })).toEqual([]);
});

test('a person without a configured role may change nothing; with several roles, the first configured row applies', async () => {
  const { runCommand, app } = await open();
  expect(await runCommand('promote', { user: '1001' }, { roles: ['3300000000000000099'] })).toBe(
    'None of your roles may change ranks.',
  );
  expect(await runCommand('demote', { user: '1001' }, { roles: [ids.trainers] })).toMatch(
    /^This key only ranks up|may only/,
  );
  expect(await runCommand('promote', { user: '1001' }, { roles: [ids.trainers, ids.hr] })).toBe(
    'Member 1001 is now Officer (rank 20), was Trainee (rank 10). (simulated group)',
  );
  const [change] = await app.store.listChanges({ limit: 1 });
  expect(change).toMatchObject({ keyId: (await app.store.findKey('hr'))?.id, rankerId: 0, rankerName: 'Annie' });
});

test('the history names a person as Discord does: by nickname, else global name, else user name', async () => {
  const { runCommand, app } = await open();
  const user = { id: ids.ann, username: 'ann_b', global_name: null };
  await runCommand('promote', { user: '1001' }, { nick: null });
  await runCommand('demote', { user: '1001' }, { fields: { member: { nick: null, roles: [ids.hr], user } } });
  const changes = await app.store.listChanges({ limit: 9 });
  expect(changes.map(({ rankerName }) => rankerName)).toEqual(['ann_b', 'Ann B.']);
});

test("a row that names a game's key stops the start; with a row that names a missing key, only commands are refused", async () => {
  const { app, runCommand, discord } = await open();
  await app.createKey({ name: 'game' });
  const rows = [{ role: ids.hr, key: 'game', at: 'rankd.yaml:9:40' }];
  const config = { ...app.live.current, discord: { ...required(app.app.discord), rows } };
  await app.stop();
  const started = openTestApp({ dataDir: app.dataDir, config: { discord: config.discord } });
  await expect(started).rejects.toMatchObject({
    ...{ code: 'config_invalid', message: expect.stringContaining('rankd.yaml:9:40 discord.commands[0].key') },
  });
  const missing = [{ role: ids.hr, key: 'nothing', at: '' }];
  const again = await openTestApp({ dataDir: app.dataDir, config: { discord: { ...config.discord, rows: missing } } });
  onTestFinished(() => again.close());
  const command = { name: 'promote', options: { user: '1001' } };
  expect(await discord.runCommand(`${again.url}/discord/interactions`, command)).toContain(
    '"nothing" of your role cannot be used',
  );
  expect(runCommand).toBeDefined();
});

function required<T>(found: T | undefined): T {
  if (found === undefined) throw new Error('nothing was found');
  return found;
}

const simulated = ' (simulated group)';

test('each slash command changes ranks like its command-line counterpart, and replies with the same sentence', async () => {
  const { runCommand, app } = await open();
  expect(await runCommand('promote', { user: 'Newcomer', reason: 'quiz' })).toBe(
    `Newcomer (1001) is now Officer (rank 20), was Trainee (rank 10).${simulated}`,
  );
  expect(await runCommand('demote', { user: '@newcomer' })).toContain('is now Trainee (rank 10), was Officer');
  for (const rank of ['20', String(roles.officer), 'officer', '"Officer"', '🔰 | off-icer'])
    expect(await runCommand('setrank', { user: 'https://www.roblox.com/users/1001/profile', rank })).toMatch(
      /Officer \(rank 20\)/,
    );
  expect(await runCommand('suspend', { user: '1001', duration: '3d', reason: 'spam' })).toMatch(
    /^Member 1001 is suspended until 20\d\d-.+ UTC, was Officer \(rank 20\)\./,
  );
  expect(await runCommand('promote', { user: '1001' })).toContain('is suspended until');
  expect(await runCommand('whois', { user: '1001' })).toMatch(
    /^\S+ \(?1001\)? is Member \(rank 1\)\.\n.*is suspended until/,
  );
  expect(await runCommand('unsuspend', { user: '1001' })).toContain('holds Officer (rank 20), Member (rank 1) again.');
  expect(await runCommand('unsuspend', { user: '1001' })).toBe(`User 1001 is not suspended.${simulated}`);
  expect(await app.heldBy(1001)).toEqual([roles.officer, roles.base]);
  const [, , , , first] = (await app.store.listChanges({ limit: 9, states: ['applied'] })).toReversed();
  expect(first).toMatchObject({ rankerId: 0, rankerName: 'Annie', by: expect.stringMatching(/^discord:[\da-f]{32}$/) });
});

test('/role gives and takes an extra role under the policy, such as a required reason or a cooldown by rank', async () => {
  const cooldowns = [{ from: 20, forMs: 86_400_000 }];
  const { runCommand, app } = await open({
    config: { group: { ladder: [10, 20], rankOne: 'custom' }, policy: { reason: 'required', cooldowns } },
  });
  const role = (user: string, action: string, reason?: string) =>
    runCommand('role', { user, action, role: 'Captain', ...(reason && { reason }) });
  expect(await role('1001', 'add')).toContain('gives no reason');
  expect(await role('1001', 'add', 'gamepass')).toContain('now also holds Captain (rank 50)');
  expect(await role('1001', 'remove', 'refund')).toContain('no longer holds Captain (rank 50)');
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
  expect(await role('1002', 'add', 'gamepass')).toContain('now also holds Captain');
  expect(await role('1002', 'remove', 'refund')).toContain('less than 24 hours ago');
});

const refused: Array<[string, Record<string, string>, RegExp]> = [
  ['promote', { user: 'no such name' }, /^The user must be a user id/],
  ['promote', { user: 'Nobody_has_it' }, /^No user is called Nobody_has_it/],
  ['promote', { user: '999' }, /^User 999 is not a member/],
  ['promote', {}, /^The user must be/],
  ['promote', { user: '<@4400000000000000099>' }, /^The person you mentioned is not linked/],
  ['promote', { user: '1001', reason: 'x'.repeat(501) }, /^The reason has 501 characters; at most 500/],
  ['setrank', { user: '1001', rank: 'Emperor' }, /Emperor/],
  ['setrank', { user: '1001', rank: '255' }, /./],
  ['suspend', { user: '1001', duration: 'long' }, /^Give a duration such as 3d/],
  ['suspend', { user: '1001', duration: '5s' }, /^The duration must be at least one minute/],
  ['suspend', { user: '1001', duration: '99999d' }, /at most/],
  ['undo', {}, /^You have not changed a rank through Discord/],
];

test('a wrong user, reason, rank, duration or undo is refused in one sentence and changes nothing', async () => {
  const { runCommand, app } = await open();
  for (const [name, options, sentence] of refused)
    expect(await runCommand(name, options), `/${name} ${JSON.stringify(options)}`).toMatch(sentence);
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
});

test('a key limits its Discord role by direction, ceiling, scope, rate, pause, test mode, and revocation up to the start', async () => {
  const { runCommand, app, key, discord, url } = await open();
  const asTrainer = { roles: [ids.trainers] };
  const { store } = app;
  expect(await runCommand('setrank', { user: '1001', rank: '200' }, asTrainer)).toContain('20');
  expect(await runCommand('promote', { user: '1001' }, asTrainer)).toContain('is now Officer');
  expect(await runCommand('demote', { user: '1001' }, asTrainer)).toContain('only');
  const trainers = await store.findKey('trainers');
  const edit = (change: object) => store.updateKey(trainers?.id ?? '', () => ({ change, events: [] }));
  await edit({ pausedAt: 1 });
  expect(await runCommand('promote', { user: '1001' }, asTrainer)).toContain('This key is paused');
  await edit({ pausedAt: null });
  const sent = discord.interact(url, { name: 'demote', options: { user: '1001' }, roles: [ids.trainers] });
  await edit({ revokedAt: 1 });
  expect(await discord.replyTo(await sent)).toMatch(/cannot be used now|only/);
  expect(await runCommand('promote', { user: '1001' }, asTrainer)).toContain(
    '"trainers" of your role cannot be used now',
  );
  await key('trainers', { mode: 'test', scopes: ['rank'] });
  expect(await runCommand('promote', { user: '1001' }, asTrainer)).toMatch(/^Test key, nothing changed: /);
  expect(await runCommand('suspend', { user: '1001', duration: '1d' }, asTrainer)).toContain('lacks the suspend scope');
  const { id } = required(await store.findKey('hr'));
  await store.updateKey(id, () => ({ change: { rules: { ratePerMinute: 1 } }, events: [] }));
  expect(await runCommand('whois', { user: '1001' })).toContain('is Officer');
  const rated = [
    await runCommand('setrank', { user: '1001', rank: '20' }),
    await runCommand('setrank', { user: '1001', rank: '20' }),
  ];
  expect(rated).toEqual([
    expect.stringContaining('is already Officer'),
    expect.stringContaining('Rank requests with this key are limited to 1 a minute'),
  ]);
  expect(await app.heldBy(1001)).toEqual([roles.officer, roles.base]);
});

test("a row does not accept a game's key, even if it has the name of an earlier key for Discord", async () => {
  const { runCommand, app } = await open();
  const { id } = required(await app.store.findKey('hr'));
  await app.store.updateKey(id, () => ({ change: { revokedAt: 1 }, events: [] }));
  await app.createKey({ name: 'hr', rules: { isAnyPlace: true } });
  expect(await runCommand('promote', { user: '1001' })).toContain('"hr" of your role cannot be used now');
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
});

test('a row whose key does not exist prevents neither a start nor a reload, but both report it', async () => {
  const section = discordConfig('http://127.0.0.1:1');
  await using app = await openTestApp({ config: { discord: section } });
  const missing = section.rows.map(({ key }) =>
    expect.stringContaining(`there is no key "${key}"; run rankd key create`),
  );
  const warnings = app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn');
  expect(warnings.map(({ msg }) => msg)).toEqual(missing);
  expect(await declareConfigured(app.app, { ...testConfig(app.dataDir), discord: section })).toEqual(missing);
});

test('without the discord section, the route does not exist; a reload adds and removes it', async () => {
  const { app, discord, url } = await open();
  const ping = JSON.stringify({ type: 1, token: 't' });
  const { discord: section } = app.app;
  const plain = await openTestApp();
  onTestFinished(() => plain.close());
  const elsewhere = `${plain.url}/discord/interactions`;
  expect((await discord.post(elsewhere, ping)).response).toMatchObject({ code: 'not_found' });
  expect((await fetch(elsewhere)).status).toBe(404);
  const config = { ...testConfig(app.dataDir), discord: section };
  await plain.live.applyConfig(config, async () => undefined);
  expect(await discord.post(elsewhere, ping)).toMatchObject({ status: 200, response: { type: 1 } });
  await plain.live.applyConfig({ ...config, discord: undefined }, async () => undefined);
  expect(await discord.post(elsewhere, ping)).toMatchObject({ status: 404 });
  expect(await discord.post(url, ping)).toMatchObject({ status: 200 });
});

test('a repeated interaction gets the reply to the first one and changes nothing', async () => {
  const { discord, url, app } = await open();
  for (const name of ['promote', 'undo']) {
    const first = await discord.interact(url, { name, options: name === 'promote' ? { user: '1001' } : {} });
    const reply = await discord.replyTo(first);
    const before = (await app.store.listChanges({ limit: 9 })).length;
    discord.replies.length = 0;
    expect(await discord.replyTo(await discord.post(url, first.body))).toBe(reply);
    expect((await app.store.listChanges({ limit: 9 })).length).toBe(before);
  }
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
});

test('/undo reverts a person’s own latest change through Discord once, within 10 minutes, unless the member was changed since', async () => {
  const clock = new ManualClock(Date.now());
  const { discord, url, app, runCommand } = await open({ clock });
  await runCommand('promote', { user: '1001' });
  expect(await runCommand('undo', {}, { userId: ids.bob })).toContain('You have not changed a rank');
  expect(await runCommand('undo')).toBe(`Member 1001 holds Trainee (rank 10), Member (rank 1) again.${simulated}`);
  expect(await runCommand('undo')).toContain('already holds the roles from before your last change');
  const [undone] = await app.store.listChanges({ limit: 1 });
  expect(undone).toMatchObject({ rankerName: 'Annie', keyId: (await app.store.findKey('hr'))?.id, command: '/undo' });
  await runCommand('promote', { user: '1001' });
  await runCommand('promote', { user: '1001' }, { userId: ids.bob });
  expect(await runCommand('undo')).toContain('was changed again since your last change');
  const runCommandAfter = async (ms: number) => {
    await clock.skip(ms);
    const body = JSON.stringify(interactionOf({ name: 'undo' }));
    return discord.replyTo(await discord.post(url, body, signed(body, clock.now())));
  };
  expect(await runCommandAfter(10 * 60_000)).toContain('was changed again since your last change');
  expect(await runCommandAfter(1)).toContain('You have not changed a rank through Discord in the last 10');
});

test('autocomplete offers the ranks that the key may give, by name or number, and none without a configured role', async () => {
  const { discord, url } = await open();
  const typed = async (rank: string, rolesOf = [ids.trainers]) =>
    (await discord.interact(url, { name: 'setrank', options: { user: '1001', rank }, focused: 'rank', roles: rolesOf }))
      .response.data?.choices;
  expect(await typed('')).toEqual([
    { name: 'Member (1)', value: String(roles.base) },
    { name: 'Recruit (1)', value: '70001' },
    { name: 'Trainee (10)', value: String(roles.trainee) },
    { name: 'Officer (20)', value: String(roles.officer) },
  ]);
  expect(await typed('OFF')).toEqual([{ name: 'Officer (20)', value: String(roles.officer) }]);
  expect(await typed('1')).toHaveLength(3);
  expect(await typed('', [ids.hr])).toContainEqual({ name: 'Captain (50)', value: String(roles.captain) });
  expect(await typed('', [])).toEqual([]);
  expect(await typed('Emperor')).toEqual([]);
});

test('autocomplete offers at most 25 choices, with names that Discord accepts, and none while Roblox hangs', async () => {
  const clock = new ManualClock(Date.now());
  const name = '\u{1f600}'.repeat(60);
  let isHanging = false;
  const { discord, url } = await open({
    clock,
    platform: (group) =>
      platformWith(group, {
        roles: async (call) => {
          if (isHanging) await new Promise(() => undefined);
          const found = await group.roles(call);
          const [captain] = found.filter(({ id }) => id === roles.captain);
          return [
            ...found,
            ...Array.from({ length: 40 }, (_, n) => ({ ...required(captain), name, id: 9_000 + n, rank: 60 + n })),
          ];
        },
      }),
  });
  const choices = async () => {
    const body = JSON.stringify(interactionOf({ name: 'setrank', options: { rank: '' }, focused: 'rank' }));
    const sent = discord.post(url, body, signed(body, clock.now()));
    return (await clock.passUntil(sent)).response.data?.choices ?? [];
  };
  const found = await choices();
  expect(found).toHaveLength(25);
  for (const choice of found) expect(choice.name.isWellFormed() && choice.name.length <= 100, choice.name).toBe(true);
  isHanging = true;
  await clock.skip(60_000);
  expect(await choices()).toEqual([]);
});

test('a linked person is the ranker and must pass the rules for rankers, which refuse a person without a link', async () => {
  const { runCommand, app } = await open({ config: { policy: { selfRank: 'deny', rankerCheck: 'claimed' } as never } });
  const unlinked = await runCommand('promote', { user: '1001' });
  expect(unlinked).toContain('This Discord account is not linked to a Roblox user');
  expect(unlinked).toContain(`rankd discord link ${ids.ann} USER`);
  await linkPerson(app.app, { discordId: ids.ann, userId: 1001, by });
  expect(await runCommand('link')).toBe('You are linked to the Roblox user 1001.');
  expect(await runCommand('promote', { user: '1001' })).toMatch(/own rank|same player/);
  expect(await runCommand('promote', { user: `<@${ids.ann}>` })).toMatch(/own rank|same player/);
  await linkPerson(app.app, { discordId: ids.ann, userId: 1003, by });
  expect(await runCommand('promote', { user: '1001' })).toContain('is now Officer');
  const [change] = await app.store.listChanges({ limit: 1 });
  expect(change).toMatchObject({ rankerId: 1003, rankerName: 'Annie', keyId: expect.any(String) });
  await app.rank(await app.createKey(), { rankeeId: 1002, rankeeName: 'Sam', rankerId: 1003, rankerName: 'Builder' });
  expect(await runCommand('link')).toBe('You are linked to the Roblox user Builder (1003).');
});

test('each person may send 30 commands a minute across all rows, not counting autocomplete', async () => {
  const clock = new ManualClock(Date.now()); // a clock that does not advance, because the limit refills with time
  const { discord, url, runCommand } = await open({ clock });
  for (let asked = 0; asked < 40; asked += 1)
    await discord.interact(url, { name: 'setrank', options: { rank: '' }, focused: 'rank' });
  for (let asked = 0; asked < 30; asked += 1)
    await discord.interact(url, { name: 'link', roles: [asked % 2 ? ids.hr : ids.trainers] });
  expect(await runCommand('link')).toBe('Too many commands; wait a minute.');
  expect(await runCommand('link', {}, { userId: ids.bob })).toContain('You are not linked');
  await expect.poll(() => discord.replies).toHaveLength(31);
});

test('simultaneous commands start in order of arrival, once all of them are acknowledged', async () => {
  const { app } = await open();
  const begun: string[] = [];
  const findDiscordPerson = (id: string) => {
    begun.push(id);
    return app.store.findDiscordPerson(id);
  };
  const context = { ...app.app, store: { ...app.store, findDiscordPerson } };
  const interactions = new Interactions(new Throttle(context.clock));
  const people = Array.from({ length: 5 }, (_, index) => `440000000000000001${index}`);
  for (const userId of people) {
    const body = JSON.stringify(interactionOf({ name: 'link', userId }));
    const request = { id: 'req_1', headers: signed(body), body: Buffer.from(body), notes: { arrivedAt: 0 } };
    const acknowledged = interactions.answer({ app: context, request } as unknown as Exchange);
    await setImmediate();
    expect({ acknowledged, begun }).toMatchObject({ acknowledged: { type: 5 }, begun: [] });
  }
  await expect.poll(() => begun).toEqual(people);
  interactions.close();
});

test('replies are retried after 429 and 5xx, and for 5 s after 404; any other error ends in a warning', async () => {
  const clock = new ManualClock(Date.now());
  const { discord, url, runCommand, app } = await open({ clock });
  const unknown = { status: 404, headers: {}, body: JSON.stringify({ code: 10_015 }) };
  const tooMany = { status: 429, headers: {}, body: JSON.stringify({ retry_after: 0.05 }) };
  discord.replyFaults.push(unknown, tooMany, 503);
  expect(await clock.passUntil(runCommand('promote', { user: '1001' }))).toContain('is now Officer');
  discord.replyFaults.push(403);
  await discord.interact(url, { name: 'demote', options: { user: '1001' } });
  await expect.poll(() => app.logLines.join('\n')).toContain('a command from Discord got no reply');
  discord.replyFaults.push({ ...tooMany, body: JSON.stringify({ retry_after: 3_600 }) });
  const late = await discord.interact(url, { name: 'link' });
  await expect.poll(() => app.logLines.filter((line) => line.includes('from Discord got no reply'))).toHaveLength(2);
  for (let tries = 0; tries < 20; tries += 1) discord.replyFaults.push(unknown);
  await discord.interact(url, { name: 'link' });
  await clock.passUntil(
    expect.poll(() => app.logLines.filter((line) => line.includes('from Discord got no reply'))).toHaveLength(3),
  );
  expect(discord.replyFaults).toHaveLength(9); // one attempt every half second, for 5 s
  expect(app.logLines.join('\n')).not.toContain(late.token);
  expect(JSON.stringify(await app.store.listAudit({ limit: 99 }))).not.toContain(late.token);
  expect(discord.violations).toEqual([]);
});

test.each(['refuses connections', 'never responds'])(
  'if Discord %s for 14 minutes, rankd logs one warning, and the rank is changed all the same',
  async (how) => {
    const clock = new ManualClock(Date.now());
    const { discord, url, app, closeDiscord } = await open({ clock });
    for (let tries = 0; tries < 100; tries += 1) discord.replyFaults.push('hang');
    if (how === 'refuses connections') await closeDiscord();
    const { token } = await discord.interact(url, { name: 'promote', options: { user: '1001' } });
    const warnings = () => app.logLines.filter((line) => line.includes('from Discord got no reply'));
    while (warnings().length === 0 && clock.monotonic() < 20 * 60_000) await clock.skip(10_000);
    expect(warnings()).toEqual([expect.stringMatching(how === 'never responds' ? /15 s/ : /ECONNREFUSED/)]);
    expect(clock.monotonic()).toBeGreaterThan(13 * 60_000);
    expect(await app.heldBy(1001)).toEqual([roles.officer, roles.base]);
    expect(app.logLines.join('\n')).not.toContain(token);
  },
);

test('if Roblox hangs for 60 s, a command changes nothing, and its reply reports that', async () => {
  const clock = new ManualClock(Date.now());
  const hang = (_user: number, { signal }: CallContext) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  const { runCommand, app } = await open({ clock, platform: (group) => platformWith(group, { getMember: hang }) });
  const reply = await clock.passUntil(runCommand('promote', { user: '1001' }));
  expect(reply).toBe(`The change could not start in time; nothing was changed. Try again.${simulated}`);
  expect(clock.monotonic()).toBeGreaterThanOrEqual(60_000);
  expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
});

test('names and reasons cannot mention anyone, create links or imitate other text', async () => {
  const { discord, url, app } = await open();
  const nick = '@everyone <@1> [x](https://evil.example) **a** \u202e \ud800';
  const sent = await discord.interact(url, { name: 'promote', options: { user: '1001', reason: '<@&2> `x`' }, nick });
  await discord.replyTo(sent);
  const [change] = await app.store.listChanges({ limit: 1 });
  expect(change?.rankerName).toContain('@everyone');
  const whois = await discord.interact(url, { name: 'whois', options: { user: '1001' } });
  await discord.replyTo(whois);
  const { content = '', allowed_mentions } = discord.replies.find(({ token }) => token === whois.token) ?? {};
  expect(allowed_mentions).toEqual({ parse: [] });
  expect(content).toContain('\\@everyone \\<\\@1\\>');
  expect(content).not.toMatch(/(?<!\\)[<@[*]/);
});

test('a key in a Discord name or in a reason is masked in the history', async () => {
  const { discord, url, app } = await open();
  const secret = await app.createKey();
  const nick = secret.slice(0, 32);
  for (const name of ['promote', 'undo']) {
    const options: Record<string, string> = name === 'promote' ? { user: '1001', reason: secret } : {};
    await discord.replyTo(await discord.interact(url, { name, options, nick }));
  }
  const changes = await app.store.listChanges({ limit: 9 });
  expect(changes).toHaveLength(2);
  expect(JSON.stringify(changes)).not.toContain(nick.slice(8));
  expect(app.logLines.join('\n')).not.toContain(nick.slice(8));
});

test("a stopping daemon finishes a command's change and sends the reply", async () => {
  const held = holdWrites();
  const { discord, url, app } = await open({ platform: held.platform });
  const sent = await discord.interact(url, { name: 'promote', options: { user: '1001' } });
  await held.begun;
  const stopping = app.stop();
  await delay(300);
  held.release();
  await stopping;
  expect(discord.replies).toMatchObject([{ token: sent.token, content: expect.stringContaining('is now Officer') }]);
});

test('a stopping daemon drains commands, refuses new ones, and warns about commands without a reply', async () => {
  const { discord, url, app, runCommand } = await open({ config: { server: { deadlineMs: 1_000 } } });
  discord.replyFaults.push('hang');
  await discord.interact(url, { name: 'promote', options: { user: '1001' } });
  await expect.poll(() => app.heldBy(1001)).toEqual([roles.officer, roles.base]);
  const stopping = app.stop();
  expect(await runCommand('promote', { user: '1001' }).catch(String)).toMatch(/stopping or restarting|fetch failed/);
  await stopping;
  expect(app.logLines.filter((line) => line.includes('from Discord got no reply'))).toHaveLength(1);
});
