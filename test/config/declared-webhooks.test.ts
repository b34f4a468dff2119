import { afterEach, beforeEach, expect, test } from 'vitest';
import { newWebhookSecret } from '../../src/core/webhooks/webhook.ts';
import { Sandbox } from './sandbox.ts';

const discord = 'https://discord.com/api/webhooks/1487000000000000857/a-token_of-it';
const secret = newWebhookSecret();

let box: Sandbox;
beforeEach(() => {
  box = new Sandbox();
  box.write('discord.url', `${discord}\n`);
  box.write('bot.url', 'https://bot.example/hook/a-token_of-it');
  box.write('bot.secret', `${secret}\n`);
  box.write('wrong.secret', 'whsec_short');
  box.write('slack.url', 'https://hooks.slack.com/services/T0/B0/a-token_of-it');
});
afterEach(() => box[Symbol.dispose]());

/** Writes a rankd.yaml that declares these webhooks, starting on line 4. */
function declare(...entries: string[]): void {
  const lines = ['platform: { kind: simulated }', 'webhooks:', '  targets:', ...entries.map((one) => `    - ${one}`)];
  box.write('rankd.yaml', `${lines.join('\n')}\n`);
}

const log = '{ name: log, url_file: discord.url }';
const bot = '{ name: bot, url_file: bot.url, secret_file: bot.secret, events: [keys, keys], for_games: true }';

test('the address of a declared webhook determines its kind, and the configuration prints neither address nor secret', () => {
  declare(log, bot);
  const { config } = box.load();
  const [first, second] = config.webhooks.targets;
  expect(first).toMatchObject({
    ...{ name: 'log', kind: 'discord', events: ['changes', 'alarms'], declaredIn: 'rankd.yaml:4' },
    shown: 'discord.com/api/webhooks/1487…857/***',
  });
  expect(second).toMatchObject({ kind: 'standard', events: ['keys'], isForGames: true, declaredIn: 'rankd.yaml:5' });
  expect([first?.address.reveal(), first?.secret, second?.secret?.reveal()]).toEqual([discord, undefined, secret]);
  expect(JSON.stringify(config)).not.toMatch(/token_of-it|whsec_/);
});

test('a systemd credential takes precedence over the file, and a file that others can read causes a warning', () => {
  declare('{ name: log, url_file: nowhere.url }');
  box.write('credentials/webhook_log_url', discord);
  expect(box.load({ env: { CREDENTIALS_DIRECTORY: box.path('credentials') } }).warnings).toEqual([]);
  declare('{ name: log, url_file: open.url }');
  box.write('open.url', discord, 0o644);
  expect(box.load().warnings).toEqual([expect.stringMatching(/open\.url can be read by other users/)]);
});

test.each([
  ['no file', ['{ name: log }'], /4:7 webhooks\.targets\[0\]\.url_file: has no value; expected the path/],
  ['a missing file', ['{ name: log, url_file: x.url }'], /4:30 .*url_file: .*x\.url does not exist/],
  ['the address itself', [`{ name: log, url_file: "${discord}" }`], /looks like the secret itself; give the path/],
  [
    'the address as a setting',
    [`{ name: log, url: "${discord}" }`],
    /targets\[0\]\.url: unknown setting; a secret never/,
  ],
  [
    'an invalid address',
    ['{ name: log, url_file: bot.secret }'],
    /bot\.secret: This is not a webhook address: .* https:\/\/; copy the whole address/,
  ],
  ['another service', ['{ name: log, url_file: slack.url }'], /Slack needs a message format/],
  [
    'a program without a secret',
    ['{ name: bot, url_file: bot.url }'],
    /4:15 .*name: a webhook to a program needs a secret/,
  ],
  [
    'a short secret',
    ['{ name: bot, url_file: bot.url, secret_file: wrong.secret }'],
    /secret_file: the file does not contain a secret/,
  ],
  [
    'an unknown event',
    ['{ name: log, url_file: discord.url, events: [chnges] }'],
    /events\[0\]: is "chnges"; expected changes,/,
  ],
  [
    'a role without quotes',
    ['{ name: log, url_file: discord.url, mention: 1482005551234567890 }'],
    /in quotes, such as/,
  ],
  ['an invalid name', ['{ name: Staff Log, url_file: discord.url }'], /name: is "Staff Log"; expected 1 to 40/],
  [
    'a repeated name',
    [log, log],
    /5:15 webhooks\.targets\[1\]\.name: .* other than that of webhooks\.targets\[0\]\.name$/,
  ],
  ['a repeated address', [log, log.replace('log', 'other')], /5:32 .*url_file: has the same address as log/],
  [
    'a misspelled setting',
    ['{ name: log, url_file: discord.url, event: [all] }'],
    /unknown setting; did you mean events\?/,
  ],
])('%s is refused with its position and without secrets', (_, entries, problem) => {
  declare(...entries);
  const { message } = box.failure();
  expect(message).toMatch(problem);
  expect(message).not.toMatch(/token_of-it|whsec_short/);
});

test('a list of targets with every entry commented out is empty', () => {
  box.write('rankd.yaml', 'platform: { kind: simulated }\nwebhooks:\n  targets:\n  # - name: log\n');
  expect(box.load().config.webhooks.targets).toEqual([]);
});
