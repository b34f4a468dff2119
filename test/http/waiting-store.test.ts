import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { RankdError } from '../../src/base/errors.ts';
import { hashKey } from '../../src/core/api-key.ts';
import { codeOf, expectError, rankBody } from '../support/answers.ts';
import { type Answer, openTestApp, place, roles, send, type TestApp } from '../support/open-test-app.ts';
import { connectTo, rawAnswers } from '../support/raw-answers.ts';

const unavailable = { status: 503, code: 'store_unavailable', error: 'Store unavailable' };

interface Sent {
  path: string;
  key: string;
  body: unknown;
}

/** Sends several requests at once on one connection, and returns the responses. */
function sendTogether(app: TestApp, requests: Sent[]): Promise<Answer[]> {
  const bytes = requests.map(({ path, key, body }, index) => {
    const json = JSON.stringify(body);
    const connection = index === requests.length - 1 ? 'close' : 'keep-alive';
    return `POST ${path} HTTP/1.1\r\nAuthorization: Bearer ${key}\r\nConnection: ${connection}\r\nContent-Length: ${json.length}\r\n\r\n${json}`;
  });
  return rawAnswers(app.url, bytes.join(''));
}

const verification = (key: string): Sent => ({ path: '/v1/apikey', key, body: { placeid: place } });

describe('a store with asynchronous key lookups', () => {
  async function openWaiting(): Promise<TestApp> {
    const app = await openTestApp();
    const { store } = app.app;
    const { lookUpKey } = store;
    vi.spyOn(store, 'lookUpKey').mockImplementation(async (query) => {
      await new Promise(setImmediate);
      return lookUpKey(query);
    });
    return app;
  }

  test('accepts and refuses the same requests as a synchronous one', async () => {
    await using app = await openWaiting();
    const key = await app.createKey();
    const testKey = await app.createKey({ name: 'test', mode: 'test' });
    expect((await app.verify(key)).status).toBe(200);
    expect((await app.rank(key)).status).toBe(200);
    expect(await app.heldBy(1001)).toContain(roles.officer);
    await using other = await openTestApp();
    const unknown = await other.createKey();
    for (const ask of [app.verify, app.rank]) {
      expect(codeOf(await ask(unknown))).toBe('invalid_key');
      expect((await ask(testKey)).status).toBe(200);
    }
    expect(codeOf(await app.verify(key, 43))).toBe('place_not_whitelisted');
  });

  test('causes a 503 if a lookup fails', async () => {
    await using app = await openTestApp();
    const key = await app.createKey();
    const failure = new RankdError('store_unavailable', 'The database does not answer.');
    vi.spyOn(app.app.store, 'lookUpKey').mockRejectedValue(failure as never);
    for (const ask of [app.verify, app.rank]) expectError(await ask(key), unavailable);
  });

  test('preserves the order of arrival of changes, even if the key of a later request is found first', async () => {
    await using app = await openTestApp();
    const [slow, quick] = [await app.createKey(), await app.createKey({ name: 'quick' })];
    const { lookUpKey } = app.app.store;
    const allAsked = Promise.withResolvers<void>();
    vi.spyOn(app.app.store, 'lookUpKey').mockImplementation((query) => {
      if (query.hash === hashKey(slow)) return allAsked.promise.then(() => lookUpKey(query));
      setImmediate(allAsked.resolve);
      return lookUpKey(query);
    });
    const change = (key: string, newRankId: number): Sent => ({
      path: `/v1/ranker?placeid=${place}`,
      key,
      body: rankBody({ newRankId }),
    });
    const answers = await sendTogether(app, [change(slow, 10), change(quick, 20)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const history = await app.store.listChanges({ limit: 2 });
    expect(history.map(({ newRankId }) => newRankId)).toEqual([20, 10]);
    expect(await app.heldBy(1001)).toContain(roles.officer);
  });
});

describe('a store that must be checked for changes by others', () => {
  /** Opens an app that records its store calls in order. The test decides when each check ends. */
  async function openAsking() {
    const app = await openTestApp();
    const { store } = app.app;
    const key = await app.createKey();
    const asked: string[] = [];
    const pendingLookUps: Array<PromiseWithResolvers<void>> = [];
    const { lookUpKey } = store;
    vi.spyOn(store, 'lookUpKey').mockImplementation((query) => {
      asked.push('key');
      return lookUpKey(query);
    });
    vi.spyOn(store, 'freshen').mockImplementation(() => {
      asked.push('changes');
      const question = Promise.withResolvers<void>();
      pendingLookUps.push(question);
      return question.promise;
    });
    const isAsked = (times: number) => expect.poll(() => pendingLookUps.length).toBe(times);
    return { app, key, asked, pendingLookUps, isAsked, [Symbol.asyncDispose]: app.close };
  }

  test('is checked once for all requests of an event loop turn, before any of their keys is looked up', async () => {
    await using world = await openAsking();
    const { app, key, asked, pendingLookUps, isAsked } = world;
    const answers = sendTogether(app, Array(3).fill(verification(key)));
    await isAsked(1);
    expect(asked).toEqual(['changes']);
    pendingLookUps[0]?.resolve();
    expect((await answers).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(asked).toEqual(['changes', 'key', 'key', 'key']);
  });

  test('is checked again for requests that arrive during a check', async () => {
    await using world = await openAsking();
    const { app, key, asked, pendingLookUps, isAsked } = world;
    const first = app.verify(key);
    await isAsked(1);
    const later = [app.verify(key), app.verify(key)];
    await expect.poll(() => app.app.requests.count).toBe(3);
    expect(asked).toEqual(['changes']);
    pendingLookUps[0]?.resolve();
    expect((await first).status).toBe(200);
    await isAsked(2);
    expect(asked).toEqual(['changes', 'key', 'changes']);
    pendingLookUps[1]?.resolve();
    expect((await Promise.all(later)).map(({ status }) => status)).toEqual([200, 200]);
    expect(asked).toEqual(['changes', 'key', 'changes', 'key', 'key']);
  });

  test('is not checked for a request before all of it has arrived', async () => {
    await using world = await openAsking();
    const { app, key, asked, pendingLookUps, isAsked } = world;
    const body = JSON.stringify({ placeid: place });
    const socket = connectTo(app.url);
    socket.write(
      `POST /v1/apikey HTTP/1.1\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    await expect.poll(() => app.app.requests.count).toBe(1);
    socket.write(body.slice(0, 5));
    await setTimeout(20);
    expect(asked).toEqual([]);
    socket.write(body.slice(5));
    await isAsked(1);
    pendingLookUps[0]?.resolve();
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 /);
    expect(asked).toEqual(['changes', 'key']);
  });

  test('causes a 503 for each request of that turn, and for no later one, if the check fails', async () => {
    await using world = await openAsking();
    const { app, key, asked, pendingLookUps, isAsked } = world;
    const answers = sendTogether(app, [verification(key), verification(key)]);
    await isAsked(1);
    pendingLookUps[0]?.reject(new RankdError('store_unavailable', 'The database does not answer.'));
    for (const answer of await answers) expectError(answer, unavailable);
    expect(asked).toEqual(['changes']);
    const next = app.verify(key);
    await isAsked(2);
    pendingLookUps[1]?.resolve();
    expect((await next).status).toBe(200);
  });

  test('causes a 503 if the check fails synchronously', async () => {
    await using app = await openTestApp();
    const key = await app.createKey();
    vi.spyOn(app.app.store, 'freshen').mockImplementationOnce(() => {
      throw new RankdError('store_unavailable', "rankd's database is closed.");
    });
    expectError(await app.verify(key), unavailable);
    expect((await app.verify(key)).status).toBe(200);
  });

  test('is not checked for requests that need no key', async () => {
    await using world = await openAsking();
    for (const path of ['/healthz', '/readyz']) expect((await send(`${world.app.url}${path}`, {})).status).toBe(200);
    expect((await send(`${world.app.url}/nowhere`, {})).status).toBe(404);
    expect(world.asked).toEqual([]);
  });
});
