import { readFileSync, writeFileSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DaemonHere } from '../support/daemon-here.ts';
import { startFakeDiscord } from '../support/fake-discord.ts';
import { CliHome } from '../support/run-cli.ts';
import { startWebhookSink, type WebhookSink } from '../support/webhook-sink.ts';

const home = new CliHome();
let sink: WebhookSink;
let daemon: DaemonHere;
let key: string;
let secret: string;

beforeAll(async () => {
  sink = await startWebhookSink();
  writeFileSync(home.path('rankd.yaml'), 'webhooks: { allow_private: [127.0.0.1] }\nplatform: { kind: simulated }\n');
  writeFileSync(home.path('bot.url'), `${sink.url}\n`);
  key = await home.createKey();
  daemon = await DaemonHere.start(home);
});

afterAll(async () => {
  await daemon.stop();
  await sink[Symbol.asyncDispose]();
  home[Symbol.dispose]();
});

const types = () => sink.received.map(({ event }) => event.type);

test('a new webhook has a secret that is shown once, and gets a test event that the Standard Webhooks library verifies', async () => {
  const made = await home.here(['webhook', 'add', 'bot', '--url-file', 'bot.url', '--out', 'bot.secret']);
  expect(made).toMatchObject({ code: 0, stdout: 'bot.secret\n' });
  expect(made.stderr).toContain('bot: the target accepted the test event (204,');
  secret = readFileSync(home.path('bot.secret'), 'utf8').trim();
  const [received] = sink.received;
  if (received === undefined) throw new Error('nothing came');
  const { headers, body } = received;
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ type: 'webhook.test', data: { webhook: 'bot' } });
  const id = { ...headers, 'webhook-id': `${headers['webhook-id']}0` };
  const time = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) };
  for (const [changed, of] of [
    [`${body} `, headers],
    [body, id],
    [body, time],
  ] as const)
    expect(() => new Webhook(secret).verify(changed, of)).toThrow();
});

test('changes by games, operators and the daemon are delivered signed and in order, as in the history', async () => {
  sink.received.length = 0;
  await using bait = await startWebhookSink(); // by default, rankd ignores the address that a game sends
  const asked = { rankeeId: 1001, newRankId: 20, webhookUrl: bait.url };
  expect((await daemon.rank(key, asked)).status).toBe(200);
  expect((await daemon.rank(key, { rankeeId: 1001, newRankId: 20 })).status).toBe(200);
  expect((await daemon.rank(key, { rankeeId: 1001, newRankId: 21 })).status).not.toBe(200);
  expect((await home.here(['rank', 'set', '1001', '10', '--reason', 'tryout'])).code).toBe(0);
  await home.json('key', 'create', 'second');
  await expect.poll(types).toEqual(['rank.changed', 'rank.refused', 'rank.changed', 'key.created']);
  const events = sink.received.map(({ body, headers }) => new Webhook(secret).verify(body, headers));
  const sequences = sink.received.map(({ event }) => event.data.sequence);
  expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
  const { changes } = await home.json<{ changes: Array<{ id: string }> }>('history', 'list');
  const { change } = await home.json<{ change: object }>('history', 'show', changes[0]?.id ?? '');
  expect(events[2]).toMatchObject({
    ...{ type: 'rank.changed', timestamp: expect.stringMatching(/Z$/) },
    data: {
      groupId: null,
      simulated: true,
      direction: 'demotion',
      change: { ...change, userName: expect.toBeOneOf([null, 'Newcomer']) }, // the daemon may have looked up the name
    },
  });
  expect(bait.received).toEqual([]);
  expect(sink.received[0]?.headers['webhook-id']).toMatch(/^evt_ws_\w+_\d+$/);
});

test('a change by a command without a daemon is delivered after the next start', async () => {
  const shown = () => home.json('webhook', 'show', 'bot');
  // A delivery is recorded only after the event has arrived.
  await expect.poll(shown).toMatchObject({ webhook: { backlog: 0 } });
  await daemon.stop();
  sink.received.length = 0;
  expect((await home.here(['rank', 'set', '1001', '20'])).code).toBe(0);
  expect(await shown()).toMatchObject({ webhook: { backlog: 1, state: 'enabled' } });
  daemon = await DaemonHere.start(home);
  await expect.poll(types).toEqual(['rank.changed']);
  await expect
    .poll(async () => (await home.json<{ webhooks: object[] }>('webhook', 'list')).webhooks)
    .toMatchObject([
      { name: 'bot', backlog: 0, lastSuccess: expect.any(String), target: `http://127.0.0.1:${sink.port}/***` },
    ]);
});

test('webhook test shows the response of the target, but never its address', async () => {
  sink.answers({ status: 418, body: `no tea at ${sink.url}` });
  const refused = await home.here(['webhook', 'test', 'bot']);
  expect(refused).toMatchObject({ code: 5, stdout: expect.stringContaining('answered 418: no tea at') });
  sink.answers(204);
  await using proxy = await startWebhookSink();
  const { origin } = new URL(proxy.url);
  const proxies = { HTTP_PROXY: origin, HTTPS_PROXY: origin, NODE_USE_ENV_PROXY: '1' };
  expect((await home.run(['webhook', 'test', 'bot'], { env: proxies })).code).toBe(0);
  expect(proxy.received).toEqual([]);
  const shown = await Promise.all([
    home.here(['webhook', 'show', 'bot']),
    home.here(['audit', 'list']),
    home.here(['webhook', 'test', 'bot', '--json']),
  ]);
  const texts = [refused, ...shown].flatMap(({ stdout, stderr }) => [stdout, stderr]).join('\n') + daemon.log;
  expect(texts).not.toMatch(/not-to-be-shown|whsec_/);
});

test('during a rotation, both secrets sign, and afterwards only the new one', async () => {
  sink.received.length = 0;
  const { secret: fresh } = await home.json<{ secret: string }>('webhook', 'rotate', 'bot', '--overlap', '24h');
  await home.json('webhook', 'test', 'bot');
  const rotated = await home.here(['webhook', 'rotate', 'bot', '--overlap', '0s', '--out', home.path('newest.secret')]);
  expect(rotated.stderr).toContain('The old secret of "bot" no longer signs events.\n');
  await home.json('webhook', 'test', 'bot');
  const newest = readFileSync(home.path('newest.secret'), 'utf8').trim();
  const verifies = (by: string, index: number) => {
    const { body = '', headers = {} } = sink.received[index] ?? {};
    try {
      return new Webhook(by).verify(body, headers) !== undefined;
    } catch {
      return false;
    }
  };
  expect([secret, fresh, newest].map((by) => [verifies(by, 0), verifies(by, 1)])).toEqual([
    [true, false],
    [true, false],
    [false, true],
  ]);
});

test('events from while a webhook was disabled are delivered once it is enabled, and can be redelivered with the same id', async () => {
  sink.received.length = 0;
  await home.json('webhook', 'disable', 'bot');
  await home.json('key', 'create', 'fourth');
  expect(await home.json('webhook', 'show', 'bot')).toMatchObject({ webhook: { state: 'disabled', backlog: 1 } });
  expect((await home.here(['status'])).stdout).toMatch(/bot is DISABLED \(by cli:\S+\), 1 event waits/);
  expect((await home.here(['doctor'])).stdout).toMatch(/FAIL +webhooks +bot is disabled: by /);
  await home.json('webhook', 'enable', 'bot');
  await expect.poll(types).toEqual(['key.created']);
  const id = sink.received[0]?.headers['webhook-id'] ?? '';
  const newest = async () => await home.json<{ deliveries: object[] }>('webhook', 'deliveries', 'bot', '--limit', '1');
  const delivered = { id, type: 'key.created', state: 'delivered', tries: 1, status: 204 };
  // A delivery is recorded only after the event has arrived.
  await expect.poll(newest).toMatchObject({ deliveries: [delivered] });
  expect(await home.json('webhook', 'redeliver', 'bot', '--since', '1h', '--dry-run')).toMatchObject({ dryRun: true });
  expect(await home.json('webhook', 'redeliver', 'bot', id)).toMatchObject({ events: 1 });
  await expect.poll(() => sink.received.map(({ headers }) => headers['webhook-id'])).toEqual([id, id]);
});

test('webhook enable --from now reports how many events are skipped, to the operator and to the webhook', async () => {
  sink.received.length = 0;
  await home.json('webhook', 'disable', 'bot');
  for (const name of ['left', 'out']) await home.json('key', 'create', name);
  const enabled = await home.here(['webhook', 'enable', 'bot', '--from', 'now']);
  expect(enabled.stdout).toMatch(/^Webhook "bot" is enabled; \d events? waits? for it\. 2 events are skipped\.$/m);
  await expect.poll(types).toEqual(['events.skipped']);
  expect(sink.received[0]?.event.data).toMatchObject({ detail: { count: 2 } });
});

test('a redelivered event does not name a forgotten user', async () => {
  sink.received.length = 0;
  const asked = { rankeeId: 1002, rankeeName: 'Sam_Officer', newRankId: 50 };
  expect((await daemon.rank(key, asked)).status).toBe(200);
  await expect.poll(types).toEqual(['rank.changed']);
  expect(sink.received[0]?.body).toContain('Sam_Officer');
  await home.json('forget', '1002', '-y');
  await home.json('webhook', 'redeliver', 'bot', sink.received[0]?.headers['webhook-id'] ?? '');
  await expect.poll(types).toEqual(['rank.changed', 'rank.changed']);
  expect(sink.received[1]?.body).not.toMatch(/Sam_Officer|\b1002\b/);
});

test('a change of a webhook’s events applies from the next event, while the daemon is running', async () => {
  sink.received.length = 0;
  await home.json('webhook', 'set', 'bot', '--events', 'workspace.suspended');
  await home.json('key', 'create', 'fifth');
  await home.json('workspace', 'suspend', '-y');
  await home.json('workspace', 'resume');
  await expect.poll(types).toEqual(['workspace.suspended']);
});

const refusals: Array<[what: string, address: string, code: number, says: string]> = [
  ['a Slack address', 'https://hooks.slack.com/services/T0/B0/x', 2, 'Slack needs a message format'],
  ['an invitation', 'https://discord.gg/abc', 2, 'an invitation to a Discord server'],
  ['an address with a password', 'https://ann:pw@hooks.example/x', 2, 'a user name or a password'],
  ['text that is not an address', 'staff-log', 2, 'This is not a webhook address'],
  ['a private address', 'https://10.1.2.3/x', 2, '10.1.2.3 is not public'],
  ['plain http', 'http://93.184.215.14/x', 2, 'it uses http'],
];

test.each(refusals)('%s is refused when it is added, with the fix', async (_, address, code, says) => {
  const result = await home.here(['webhook', 'add', 'other'], { input: address });
  expect(result).toMatchObject({ code, stderr: expect.stringContaining(says) });
  expect(result.stderr).not.toContain('ann:pw');
});

test('http to an unknown name is refused if no private network is allowed', async () => {
  const result = await home.here(['webhook', 'add', 'other'], { cwd: home.folder, input: 'http://rankd.invalid/x' });
  expect(result).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/it uses http.*its host name (does not exist|could not)/),
  });
});

test('an https address with an unknown name is accepted with a warning', async () => {
  const result = await home.here(['webhook', 'add', 'later', '--no-test', '--out', 'later.secret'], {
    input: 'https://rankd.invalid/x',
  });
  expect(result).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^warning: .*its host name (does not exist|could not)/m),
  });
  await home.json('webhook', 'remove', 'later', '-y');
});

test('a failure mentions that webhooks do not use the proxy of the environment', async () => {
  await home.here(['webhook', 'add', 'afar', '--no-test', '--out', 'afar.secret'], {
    input: 'https://rankd.invalid/x',
  });
  const env = { HTTPS_PROXY: 'http://user:geheim@proxy:3128' };
  const { stdout, stderr } = await home.here(['webhook', 'test', 'afar'], { env });
  expect(stdout + stderr).toMatch(/its host name .*; webhooks do not use the proxy in HTTPS_PROXY/);
  expect(stdout + stderr).not.toContain('geheim');
  await home.json('webhook', 'remove', 'afar', '-y');
});

test.each([
  ['nofile', 3, 'nofile does not exist.'],
  ['.', 2, '. is a folder.'],
])('an address in %s is refused with the fix, by add and set', async (file, code, says) => {
  for (const args of [
    ['add', 'other'],
    ['set', 'bot'],
  ]) {
    const result = await home.here(['webhook', ...args, '--url-file', file]);
    expect(result).toEqual(expect.objectContaining({ code, stderr: expect.stringContaining(says) }));
  }
});

test('an address that may not be called cannot be the new address of a webhook either', async () => {
  for (const address of ['https://10.1/x', 'https://[::ffff:10.0.0.1]/x', 'http://93.184.215.14/x']) {
    const result = await home.here(['webhook', 'set', 'bot', '--url-file', '-'], { input: address });
    expect(result).toMatchObject({ code: 2, stderr: expect.stringMatching(/is not public|it uses http/) });
  }
});

test('a taken name or address is refused with 4, an invalid name or event with 2', async () => {
  const code = async (args: string[], input = 'https://93.184.215.14/x') =>
    (await home.here(['webhook', 'add', ...args, '--no-test'], { input })).code;
  expect(await code(['bot'])).toBe(4);
  expect(await code(['other'], sink.url)).toBe(4);
  expect(await code(['Other Name'])).toBe(2);
  const typo = await home.here(['webhook', 'add', 'other', '--events', 'chnges'], { input: sink.url });
  expect(typo).toMatchObject({ code: 2, stderr: expect.stringContaining('--events changes') });
});

test('a Discord channel is checked when it is added, and receives changes', async () => {
  await using channel = await startFakeDiscord();
  const gone = await home.here(['webhook', 'add', 'log', '--kind', 'discord'], {
    input: channel.address.replace(/857\/(?=[^/]+$)/, '858/'),
  });
  expect(gone).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Discord has no webhook at this address (404)'),
  });
  const made = await home.here(['webhook', 'add', 'log', '--kind', 'discord'], { input: channel.address });
  expect(made.stderr).toContain('Its name in Discord is Captain Hook, and its channel is 1487000000000000001.');
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/1487…857\/\*\*\*\n$/) });
  await home.here(['rank', 'set', '1001', '10']);
  const titles = () => channel.discord.messages.flatMap(({ embeds }) => embeds.map(({ title }) => title));
  await expect.poll(titles).toContain('Newcomer demoted');
  expect(channel.discord.messages[0]?.content).toContain('rankd is connected');
  expect(channel.discord.violations).toEqual([]);
  await home.json('webhook', 'remove', 'log', '-y');
});

test('a game can choose a channel by its address only if it was added for games', async () => {
  await using channel = await startFakeDiscord();
  const add = ['webhook', 'add', 'game-log', '--kind', 'discord', '--for-games', '--no-test'];
  expect((await home.here(add, { input: channel.address })).code).toBe(0);
  const embedTitles = () => channel.discord.messages.flatMap(({ embeds }) => embeds.map(({ title }) => title));
  const asked = { rankeeId: 1001, webhookUrl: channel.address };
  // The address is ignored until caller_url is `match`.
  expect((await daemon.rank(key, { ...asked, newRankId: 10 })).status).toBe(200);
  writeFileSync(
    home.path('rankd.yaml'),
    'webhooks: { allow_private: [127.0.0.1], caller_url: match }\nplatform: { kind: simulated }\n',
  );
  expect((await home.here(['reload'])).code).toBe(0);
  expect((await daemon.rank(key, { rankeeId: 1001, newRankId: 50 })).status).toBe(200);
  expect((await daemon.rank(key, { ...asked, newRankId: 20 })).status).toBe(200);
  await expect.poll(embedTitles).toEqual([expect.stringMatching(/demoted$/)]);
  await home.json('webhook', 'remove', 'game-log', '-y');
});

test('a removed webhook receives no more events', async () => {
  sink.received.length = 0;
  expect((await home.here(['webhook', 'remove', 'bot'])).code).toBe(2);
  expect((await home.here(['webhook', 'remove', 'bot', '-y'])).code).toBe(0);
  await home.json('key', 'create', 'third');
  expect((await home.here(['webhook', 'show', 'bot'])).code).toBe(3);
  await daemon.stop();
  expect(sink.received).toEqual([]);
});
