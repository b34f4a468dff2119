import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rankBody } from '../support/answers.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';
import { send } from '../support/open-test-app.ts';

/**
 * Uses every secret correctly and incorrectly, and then searches for it everywhere except where it belongs: in the
 * Roblox key's file, in the files from `--out`, in the output that shows a new key once, and, if it is a webhook's, in
 * the database.
 */
let at: OpenCloudHome;
let daemon: DaemonProcess;
const secrets = new Map<string, string>();
/** Everything to search, as pairs of a description and its content. */
const places: Array<[string, string]> = [];

beforeAll(async () => {
  at = await openCloudHome();
  secrets.set('the Roblox key', at.roblox.apiKey).set('a key', at.secret);
  appendFileSync(
    at.home.path('rankd.yaml'),
    'webhooks: { allow_private: [127.0.0.1] }\ncompat: [rankgun, noblox-server]\n',
  );
  daemon = await at.startDaemon();
  secrets.set('a rotated key', await minted('key', 'rotate', 'game', '--overlap', '1h'));
  await rankd(['key', 'create', 'filed', '--out', 'filed.key']);
  secrets.set('a key in a file', readFileSync(at.home.path('filed.key'), 'utf8').trim());
  secrets.set('a revoked key', await minted('key', 'create', 'gone'));
  await rankd(['key', 'revoke', 'gone', '-y']);
  await useWebhooks();
  await useEverySecret();
  await misplaceEverySecret();
  await showEverything();
  places.push(...processArguments());
  places.push(...dataFiles('while it runs'));
  await daemon.stop();
  places.push(['the log', daemon.log], ...dataFiles('afterwards'));
  await misplaceInFileNames();
  places.push(...dataFiles('at the end'));
}, 180_000);

afterAll(() => at?.[Symbol.asyncDispose]());

test('the search covers all places', () => {
  const all = places.map(([where]) => where).join('\n');
  for (const where of [
    'rankd.db-wal while it runs',
    'rankd.db afterwards',
    'the arguments of the daemon',
    'audit list',
    'the backup',
  ])
    expect(all).toContain(where);
  expect(places.find(([where]) => where === 'the log')?.[1]).toContain('invalid_key');
  expect(places.filter(([, text]) => text.includes('key_')).length).toBeGreaterThan(10);
});

const webhookSecrets = ['an address of Discord', 'the address of a program', 'the secret that signs'];

describe.each([...webhookSecrets, 'the Roblox key', 'a key', 'a rotated key', 'a key in a file', 'a revoked key'])(
  '%s is in no place',
  (name) => {
    test('whole, in part, or encoded', () => {
      const secret = secrets.get(name) ?? '';
      expect(secret.length).toBeGreaterThan(20);
      const middle = secret.slice(12, -6);
      const base64 = Buffer.from(secret).toString('base64').slice(4, -8);
      const found = places.filter(([, text]) =>
        [middle, base64, Buffer.from(middle).toString('hex')].some((form) => text.includes(form)),
      );
      const isWebhookSecret = webhookSecrets.includes(name); // they are in the database, as SECURITY.md explains
      const leaks = found
        .map(([where]) => where)
        .filter((where) => !(isWebhookSecret && /^rankd\.db|the backup/.test(where)));
      expect(leaks).toEqual([]);
    });
  },
);

async function rankd(args: string[], { input = '', keep = true } = {}): Promise<string> {
  const { stdout, stderr } = await at.home.here(args, { input });
  if (keep) places.push([`output of rankd ${args.join(' ')}`, stdout + stderr]);
  return stdout;
}

/** Runs a command that prints a secret only once, and returns the secret. */
async function minted(...args: string[]): Promise<string> {
  return (await rankd(args, { keep: false })).trim();
}

async function post(path: string, key: string | undefined, body: unknown, headers: Record<string, string> = {}) {
  const answer = await send(daemon.url + path, { method: 'POST', key, body, headers });
  places.push([`answer ${answer.status} of ${path.slice(0, 12)}`, JSON.stringify([answer.headers, answer.text])]);
}

/** Sends a request in another service's format; the OpenAPI document does not describe the response. */
async function postAsOthers(path: string, body: unknown, headers: Record<string, string>): Promise<void> {
  const sent = { method: 'POST', headers: { 'roblox-id': '1', ...headers }, body: JSON.stringify(body) };
  const answer = await fetch(daemon.url + path, sent);
  places.push([
    `answer ${answer.status} of ${path.slice(0, 12)}`,
    JSON.stringify([...answer.headers, await answer.text()]),
  ]);
}

/** Adds webhooks with unreachable targets, so that their errors appear in many places. */
async function useWebhooks(): Promise<void> {
  const token = 'nobody-may-read-this-token-of-a-webhook';
  secrets.set('an address of Discord', `discordtoken-${token}-discord`);
  secrets.set('the address of a program', `programpath-${token}-program`);
  const addresses = [
    ['log', 'discord', `https://127.0.0.1:9/api/webhooks/1487000000000000857/${secrets.get('an address of Discord')}`],
    ['bot', 'standard', `https://127.0.0.1:9/${secrets.get('the address of a program')}?token=${token}`],
  ] as const;
  for (const [name, kind, address] of addresses) {
    const out = kind === 'standard' ? ['--out', 'bot.secret'] : [];
    await rankd(['webhook', 'add', name, '--kind', kind, ...out], { input: address });
    await rankd(['webhook', 'test', name, '-v']);
    await rankd(['webhook', 'show', name, '--json']);
  }
  secrets.set('the secret that signs', readFileSync(at.home.path('bot.secret'), 'utf8').trim());
  await rankd(['webhook', 'list', '--json']);
}

async function useEverySecret(): Promise<void> {
  for (const key of secrets.values()) {
    await post('/v1/apikey', key, { placeid: 1 });
    await post('/v1/apikey', key, { placeid: 2 });
    await post('/v1/ranker?placeid=1', key, rankBody({ newRankId: 20 }), { 'idempotency-key': 'once' });
    await rankd(['key', 'verify', '-'], { input: key });
  }
}

async function misplaceEverySecret(): Promise<void> {
  const { secret: good } = at;
  for (const key of secrets.values()) {
    await post('/v1/apikey', `${key}x`, { placeid: 1 });
    await post('/v1/apikey', undefined, { placeid: 1 }, { authorization: `Basic ${key}` });
    await post('/v1/apikey', undefined, { placeid: 1 }, { authorization: `Bearer ${key} ${key}`, 'x-api-key': key });
    await post(`/v1/apikey/${key}?key=${key}`, good, { placeid: key });
    await post(`/v1/ranker?placeid=${key}`, good, rankBody());
    await post('/v1/ranker?placeid=1', good, rankBody({ rankeeId: key }));
    await post('/v1/ranker?placeid=1', good, rankBody({ webhookUrl: `https://x.example/api/webhooks/1/${key}` }));
    await post('/v1/ranker?placeid=1', good, key);
    await post('/v2/rank?placeid=1', good, { username: key, rank: key, reason: key });
    await post('/v2/suspend?placeid=1', good, { robloxUserId: key, duration: key });
    await post('/v2/promote', undefined, { robloxUserId: 1001 }, { 'x-api-key': `${key}x`, 'roblox-id': key });
    await post(`/v2/${key}?username=${key}`, good, {});
    await postAsOthers(`/group/1/member/${key}/rank`, { role: key }, { authorization: key });
    await postAsOthers('/roblox/set-rank', { user_id: key, rank: key }, { 'staff-token': key });
    await rankd(['key', 'verify', '-'], { input: `${key}x` });
  }
  for (const name of ['a key', 'a revoked key']) await misplaceInTexts(secrets.get(name) ?? '');
}

/** Puts the key into many text fields that rankd stores from a request or from an operator. */
async function misplaceInTexts(key: string): Promise<void> {
  const texts = ['rankerName', 'rankeeName', 'command', 'oldRankName', 'prefix'];
  for (const newRankId of [20, 255])
    for (const text of [key, `a ${key}, twice: ${key}!`, `${'x'.repeat(90)}${key}`, `${'x'.repeat(20)}${key}`]) {
      const fields = Object.fromEntries(texts.map((name) => [name, text]));
      const body = rankBody({ ...fields, newRankId, webhookUrl: `https://${key}.example/x` });
      await post('/v1/ranker?placeid=1', at.secret, body, { 'idempotency-key': `${newRankId}${text}`.slice(-128) });
    }
  await post('/v1/ranker?placeid=1', at.secret, rankBody(), { 'idempotency-key': key });
  const spoken = { robloxUserId: 1001, reason: key, rankerName: key, command: key };
  for (const rank of [20, 255, key, `the ${key}`]) await post('/v2/rank?placeid=1', at.secret, { ...spoken, rank });
  const operator = [
    ['whitelist', 'add', '1', '5', '--note', key],
    ['whitelist', 'add', '6', '--note', `the key is ${key}.`],
    ['whitelist', 'remove', '6'],
    ['key', 'create', key],
    ['key', 'create', `a-${key}`],
    ['history', 'undo', '--by', key, '--since', '1h', '-y'],
    ['history', 'undo', '--by', `cli:${key}`, '--since', '1h', '-y'],
    ['--config', `${key}.yaml`, 'reload'],
  ];
  writeFileSync(at.home.path(`${key}.yaml`), readFileSync(at.home.path('rankd.yaml')));
  for (const args of operator) await rankd(args, { keep: false }); // their output repeats their arguments
}

async function misplaceInFileNames(): Promise<void> {
  const { secret } = at;
  await rankd(['backup', `${secret}.db`], { keep: false });
  await rankd(['restore', `${secret}.db`, '-y'], { keep: false });
  const entry = { hash: '0'.repeat(64), whitelist: [77] };
  const real = readFileSync(at.home.path('rankd.yaml'), 'utf8');
  writeFileSync(at.home.path(`${secret}.yaml`), `${real}\nkeys: [${JSON.stringify({ name: 'declared', ...entry })}]\n`);
  await using _daemon = await DaemonProcess.start(at.home, { args: ['--config', `${secret}.yaml`] });
  await rankd(['--config', `${secret}.yaml`, 'reload'], { keep: false });
  await rankd(['audit', 'list', '--limit', '500', '--json']);
  await rankd(['key', 'list', '--json']);
}

async function showEverything(): Promise<void> {
  const commands = [
    ['key', 'list'],
    ['key', 'show', 'game'],
    ['whitelist', 'list'],
    ['history', 'list'],
    ['audit', 'list', '--limit', '500'],
    ['config', 'show', '--origin'],
    ['config', 'check'],
    ['group', 'show'],
    ['rank', 'test', '1001', '20', '--key', 'game', '--place', '1'],
    ['rank', 'set', '1001', '10', '-v'],
    ['history', 'undo', '--key', 'game', '--since', '1h', '--dry-run'],
    ['status'],
    ['doctor'],
  ];
  for (const args of commands) {
    await rankd(args);
    await rankd([...args, '--json', '-v']);
  }
  await rankd(['audit', 'list', '--export', 'csv']);
  await rankd(['history', 'export', '--format', 'csv']);
  await rankd(['history', 'export', '--format', 'jsonl']);
  const { changes } = JSON.parse(await rankd(['history', 'list', '--limit', '9', '--json'])) as {
    changes: { id: string }[];
  };
  for (const { id } of changes) await rankd(['history', 'show', id, '--json']);
  await rankd(['backup', 'rankd.backup']);
  places.push(['the backup', readFileSync(at.home.path('rankd.backup'), 'latin1')]);
  at.roblox.credential.enabled = false;
  await post('/v1/ranker?placeid=1', at.secret, rankBody());
  await rankd(['rank', 'set', '1001', '20', '-v']);
}

function dataFiles(when: string): Array<[string, string]> {
  return readdirSync(at.home.dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => [`${name} ${when}`, readFileSync(join(parentPath, name), 'latin1')]);
}

/** All users of the machine can read the arguments of running processes. */
function processArguments(): Array<[string, string]> {
  const others = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((id): Array<[string, string]> => {
      try {
        return [[`the arguments of process ${id}`, readFileSync(`/proc/${id}/cmdline`, 'latin1')]];
      } catch {
        return []; // the process has ended
      }
    });
  return [...others, ['the arguments of the daemon', readFileSync(`/proc/${daemon.process.pid}/cmdline`, 'latin1')]];
}
