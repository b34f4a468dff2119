import { describe, expect, test } from 'vitest';
import { createKey, rotateKey } from '../../src/usecases/keys/keys.ts';
import { operate } from '../contracts/store/samples.ts';
import { expectError } from '../support/answers.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openTestApp, place, type TestApp } from '../support/open-test-app.ts';
import { secondEngine } from '../support/store-of-app.ts';

const invalidKey = { status: 401, code: 'invalid_key', error: 'Invalid API Key' };
const notWhitelisted = { status: 403, code: 'place_not_whitelisted', error: 'Place not whitelisted' };

test('a valid key and place get the workspace id as a bare JSON string', async () => {
  await using app = await openTestApp();
  const answer = await app.verify(await app.createKey());
  const { id } = await app.store.getWorkspace();
  expect(answer).toMatchObject({ status: 200, text: JSON.stringify(id) });
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(answer.headers['x-request-id']).toMatch(/^req_\w+$/);
  expect(answer.headers['ratelimit-policy']).toBe('"verify";q=3000;w=60');
  expect(answer.headers['ratelimit']).toMatch(/^"verify";r=2999;t=\d+$/);
});

test('a test key is verified like a live one', async () => {
  await using app = await openTestApp();
  expect((await app.verify(await app.createKey({ mode: 'test' }))).status).toBe(200);
});

describe('invalid keys', () => {
  type Spoil = (app: TestApp, secret: string, clock: ManualClock) => Promise<string | undefined>;
  const main = async (app: TestApp) => {
    const key = await app.store.findKey('main');
    if (key === undefined) throw new Error('no key');
    return key;
  };
  const spoiled: Record<string, Spoil> = {
    'of another daemon': async () => {
      await using other = await openTestApp();
      return await other.createKey();
    },
    'with one wrong character': async (_app, secret) => secret.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
    'cut off': async (_app, secret) => secret.slice(0, -1),
    'that are not keys at all': async () => 'hunter2',
    revoked: async (app) => void (await operate(app.app).revokeKey((await main(app)).id, 'cli:ann@host')),
    expired: async (_app, _secret, clock) => void (await clock.advance(60_000)),
    'rotated out': async (app, _secret, clock) => {
      await rotateKey(app.app, { key: 'main', overlapMs: 1_000, by: 'cli:ann@host' });
      await clock.advance(1_000);
      return undefined;
    },
    'of a suspended workspace': async (app) =>
      void (await operate(app.app).updateWorkspace({ active: false }, 'cli:a@h')),
    'of a workspace on the free plan': async (app) =>
      void (await operate(app.app).updateWorkspace({ plan: 'free' }, 'cli:a@h')),
  };

  test.each(Object.entries(spoiled))('%s get the same refusal', async (_name, spoil) => {
    const clock = new ManualClock();
    await using app = await openTestApp({ clock });
    const secret = await app.createKey({ expiresAt: clock.now() + 60_000 });
    expect((await app.verify(secret)).status).toBe(200);
    const answer = await app.verify((await spoil(app, secret, clock)) ?? secret);
    expectError(answer, invalidKey);
    expect(answer.json).toMatchObject({
      message:
        'This game key is not accepted. Send the whole key, as in its file and without quotes. Check the file: rankd key verify - < my-game.key',
    });
  });
});

describe('the Authorization header', () => {
  test.each(['bearer', 'BEARER', 'Bearer '])('is accepted with the scheme written as %j', async (scheme) => {
    await using app = await openTestApp();
    const authorization = `${scheme} ${await app.createKey()}`;
    const answer = await app.post('/v1/apikey', { headers: { authorization }, body: { placeid: place } });
    expect(answer.status).toBe(200);
  });

  test.each([undefined, '', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer one two', 'rk_live_x'])(
    'is refused as missing or invalid if it is %j',
    async (authorization) => {
      await using app = await openTestApp();
      const answer = await app.post('/v1/apikey', { headers: { authorization }, body: { placeid: place } });
      const error = 'Missing or invalid Authorization header';
      expectError(answer, { status: 401, code: 'missing_authorization', error });
    },
  );
});

describe('the whitelist', () => {
  test('is per key: a place of one key is not a place of another', async () => {
    await using app = await openTestApp();
    const [here, there] = [await app.createKey(), await app.createKey({ name: 'other', places: [43] })];
    expect((await app.verify(here)).status).toBe(200);
    expectError(await app.verify(there), notWhitelisted);
    expectError(await app.verify(here, 43), notWhitelisted);
  });

  test('refuses a disabled place by name, and accepts the others', async () => {
    await using app = await openTestApp();
    const key = await app.createKey({ places: [place, 9007199254740991] });
    const keyId = (await app.store.findKey('main'))?.id ?? '';
    await operate(app.app).setEntriesActive({ keyId, placeIds: [place], active: false }, 'cli:ann@host');
    const answer = await app.verify(key);
    expectError(answer, notWhitelisted);
    expect(answer.json).toMatchObject({ message: expect.stringContaining(`Place ${place} is`) });
    expect((await app.verify(key, '9007199254740991')).status).toBe(200);
  });
});

test("another process's changes to a key apply from the next request", async () => {
  await using app = await openTestApp();
  const cli = await secondEngine(app.dataDir, app.app.clock).openStore();
  const { key, secret } = await createKey(
    { store: cli, clock: app.app.clock },
    { name: 'game', mode: 'live', scopes: ['verify'], by: 'cli:ann@host' },
  );
  expectError(await app.verify(secret), notWhitelisted);
  await operate({ store: cli }).addEntries({ keyId: key.id, placeIds: [place] }, 'cli:ann@host');
  expect((await app.verify(secret)).status).toBe(200);
  await operate({ store: cli }).revokeKey(key.id, 'cli:ann@host');
  expectError(await app.verify(secret), invalidKey);
  await cli.close();
});
