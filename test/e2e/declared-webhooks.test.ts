import { writeFileSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { newWebhookSecret } from '../../src/core/webhooks/webhook.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { startFakeDiscord } from '../support/fake-discord.ts';
import { CliHome } from '../support/run-cli.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';

test('declared webhooks read their addresses from files; commands show them, and only the configuration changes them', async () => {
  using home = new CliHome();
  await using first = await startWebhookSink();
  await using second = await startWebhookSink();
  const secret = newWebhookSecret();
  const write = (name: string, text: string) => writeFileSync(home.path(name), text, { mode: 0o600 });
  const configure = (...targets: string[]) =>
    write(
      'rankd.yaml',
      ['platform: { kind: simulated }', 'webhooks:', '  allow_private: [127.0.0.1]', '  targets:', ...targets].join(
        '\n',
      ),
    );
  const bot = '    - { name: bot, url_file: bot.url, secret_file: bot.secret, events: [rank.changed] }';
  write('bot.url', first.url);
  write('bot.secret', secret);
  configure(bot);
  const daemon = await DaemonHere.start(home);
  onTestFinished(async () => void (await daemon.stop()));
  const sequences = (sink: typeof first) => sink.received.map(({ event }) => event.data.sequence);

  await home.json('rank', 'set', '1001', '20');
  await expect.poll(() => first.received.length).toBe(1);
  const [{ body = '', headers = {} } = {}] = first.received;
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ type: 'rank.changed' });
  const [shown] = (await home.json<{ webhooks: object[] }>('webhook', 'list')).webhooks;
  const target = `http://127.0.0.1:${first.port}/***`;
  expect(shown).toMatchObject({ name: 'bot', target, declaredIn: 'rankd.yaml:5', state: 'enabled' });
  expect(await home.json('webhook', 'test', 'bot')).toMatchObject({ delivered: true });

  for (const change of [['set', '--events', 'all'], ['rotate'], ['disable'], ['remove', '-y']]) {
    const [command = '', ...options] = change;
    const refused = await home.here(['webhook', command, 'bot', ...options]);
    expect(refused).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('is declared in rankd.yaml:5; edit it there'),
    });
  }
  const add = async (name: string, input: string) =>
    (await home.here(['webhook', 'add', name, '--no-test'], { input })).code;
  expect([await add('bot', second.url), await add('other', first.url), await add('other', second.url)]).toEqual([
    4, 4, 0,
  ]);

  configure(bot, bot.replace('bot,', 'other,').replace('bot.url', 'other.url'));
  write('other.url', 'https://93.184.215.14/x');
  const clash = await home.here(['reload']);
  expect(clash.code).not.toBe(0);
  expect(clash.stderr).toContain('is the name of the webhook "other", which was created with rankd webhook add');
  await home.json('webhook', 'remove', 'other', '-y');

  write('bot.url', second.url);
  configure(bot, '    - { name: inner, url_file: inner.url, secret_file: bot.secret }');
  write('inner.url', 'https://10.1.2.3/not-to-be-shown');
  expect((await home.here(['reload'])).code).toBe(0);
  const forbidden = await home.here(['webhook', 'test', 'inner']);
  expect(forbidden).toMatchObject({ code: 69, stdout: expect.stringContaining('10.1.2.3 is not public') });
  configure(bot);
  expect((await home.here(['reload'])).code).toBe(0);
  await home.json('rank', 'set', '1001', '10');
  await expect.poll(() => second.received.length).toBe(1);
  expect(sequences(second)[0]).toBeGreaterThan(sequences(first)[0] ?? 0);
  expect(first.received.filter(({ event }) => event.type === 'rank.changed')).toHaveLength(1);

  configure();
  expect((await home.here(['reload'])).code).toBe(0);
  expect(await home.json('webhook', 'list')).toMatchObject({ webhooks: [] });
  const audit = await home.here(['audit', 'list', '--action', 'webhook']);
  expect(audit.stdout).toMatch(/webhook\.declare/);
  expect(audit.stdout + audit.stderr + daemon.log + clash.stderr).not.toMatch(/not-to-be-shown|whsec_/);
});

test('games’ events for a declared webhook are counted while they wait, delivered after a restart, and can be redelivered', async () => {
  using home = new CliHome();
  await using channel = await startFakeDiscord();
  writeFileSync(home.path('log.url'), channel.address, { mode: 0o600 });
  writeFileSync(
    home.path('rankd.yaml'),
    `platform: { kind: simulated }
webhooks:
  allow_private: [127.0.0.1]
  caller_url: match
  targets:
    - { name: game-log, kind: discord, url_file: log.url, for_games: true }
`,
  );
  const key = await home.createKey();
  const backlog = async () =>
    (await home.json<{ webhook: { backlog: number } }>('webhook', 'show', 'game-log')).webhook;
  {
    await using daemon = await DaemonHere.start(home);
    const asked = { rankeeId: 1001, webhookUrl: channel.address };
    expect((await daemon.rank(key, { ...asked, newRankId: 20 })).status).toBe(200);
  }
  expect(await backlog()).toMatchObject({ backlog: 1, declaredIn: 'rankd.yaml:6' });
  await using _daemon = await DaemonHere.start(home);
  const embedTitles = () => channel.discord.messages.flatMap(({ embeds }) => embeds.map(({ title }) => title));
  await expect.poll(embedTitles).toEqual([expect.stringMatching(/promoted$/)]);
  await expect.poll(backlog).toMatchObject({ backlog: 0 });
  expect(await home.json('webhook', 'redeliver', 'game-log', '--since', '1h')).toMatchObject({ events: 1 });
  await expect.poll(embedTitles).toHaveLength(2);
});
