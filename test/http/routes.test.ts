import http from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectError } from '../support/answers.ts';
import { openTestApp, send, type TestApp } from '../support/open-test-app.ts';

let app: TestApp;

beforeAll(async () => {
  app = await openTestApp();
});

afterAll(() => app.close());

const notFound = { status: 404, code: 'not_found', error: 'Not found' };
const wrongMethod = { status: 405, code: 'method_not_allowed', error: 'Method not allowed' };

test.each(['/v1', '/v1/apikey/x', '/V1/apikey', '/v2/ranker', '/favicon.ico', '/v1/ranker%00', '/..%2f..%2fetc'])(
  '%s gets 404, whatever the method',
  async (path) => {
    for (const method of ['GET', 'POST', 'PUT', 'OPTIONS'])
      expectError(await send(app.url + path, { method }), notFound);
  },
);

test('every wrong method is refused with a list of allowed methods', async () => {
  const others = http.METHODS.filter((method) => !['POST', 'HEAD', 'CONNECT'].includes(method));
  for (const method of others) {
    const answer = await send(`${app.url}/v1/apikey?placeid=42`, { method });
    expectError(answer, wrongMethod);
    expect(answer.headers.allow).toBe('POST');
    expect(answer.json).toMatchObject({ message: `${method} is not allowed here; send POST.` });
  }
  const health = await send(`${app.url}//healthz/`, { method: 'DELETE' });
  expectError(health, wrongMethod);
  expect(health.headers.allow).toBe('GET, HEAD');
});

test('HEAD gets the same headers and no body', async () => {
  const [refused, healthy] = await Promise.all(
    ['/v1/apikey', '/healthz'].map((path) => send(app.url + path, { method: 'HEAD' })),
  );
  expect(refused).toMatchObject({ status: 405, text: '', headers: { allow: 'POST' } });
  expect(refused?.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(healthy).toMatchObject({ status: 200, text: '' });
});

test('health and readiness are JSON', async () => {
  expect(await send(`${app.url}/healthz`, {})).toMatchObject({ status: 200, json: { status: 'ok' } });
  expect(await send(`${app.url}/readyz`, {})).toMatchObject({ status: 200, json: { status: 'ready' } });
});

test('a browser at the root gets a short page with links; a program gets JSON', async () => {
  const page = await send(`${app.url}/`, { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
  expect(page).toMatchObject({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } });
  expect(page.text).toContain('rankd is running');
  expect(page.text).not.toMatch(/<(script|style|link|img|iframe|form)\b|\son\w+=/i);
  expect(page.headers['content-security-policy']).toContain("default-src 'none'");
  const links = [...page.text.matchAll(/href="(.+?)"/g)].map(([, link = '']) => new URL(link, `${app.url}/`).href);
  const { docs, openapi } = (await send(app.url, { headers: { accept: 'application/json' } })).json as Record<
    string,
    string
  >;
  for (const link of [...links, app.url + docs, app.url + openapi]) expect((await send(link, {})).status).toBe(200);
  expect(links).toHaveLength(3);
  expectError(await send(`${app.url}/`, { method: 'POST' }), wrongMethod);
});
