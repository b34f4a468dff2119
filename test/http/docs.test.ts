import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicCodes } from '../../src/http/errors.ts';
import { expectError } from '../support/answers.ts';
import { type Answer, openTestApp, send, type TestApp } from '../support/open-test-app.ts';

let app: TestApp;
let page: Answer;

beforeAll(async () => {
  app = await openTestApp();
  page = await send(`${app.url}/docs`, {});
});

afterAll(() => app.close());

test('the API page loads and runs nothing, and its content security policy allows only its own style', () => {
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(page.text).not.toMatch(
    /<(script|link|img|iframe|object|embed|form|base)\b|\b(src|style|on\w+)=|url\(|@import/i,
  );
  const [, style = ''] = /<style>(.+?)<\/style>/s.exec(page.text) ?? [];
  const hash = createHash('sha256').update(style).digest('base64');
  expect(page.headers['content-security-policy']).toBe(
    `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  );
  expect(page.headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
});

test('the API page closes its tags in order, and its links have targets', async () => {
  const open: string[] = [];
  for (const [, slash, tag = ''] of page.text.matchAll(/<(\/?)(\w+)[^>]*>/g)) {
    if (tag === 'meta') continue;
    if (slash === '') open.push(tag);
    else expect(open.pop()).toBe(tag);
  }
  expect(open).toEqual([]);
  const links = [...page.text.matchAll(/href="(.+?)"/g)].map(([, link = '']) => link);
  expect(links.length).toBeGreaterThan(0);
  for (const link of links) {
    if (link.startsWith('#')) expect(page.text).toContain(`id="${link.slice(1)}"`);
    else expect((await send(new URL(link, `${app.url}/docs`).href, {})).status).toBe(200);
  }
});

test('the API page has every operation, field, header and code of the OpenAPI document', async () => {
  const { paths, components } = (await send(`${app.url}/openapi.json`, {})).json as {
    paths: Record<string, Record<string, { parameters?: Array<{ name: string }> }>>;
    components: {
      schemas: Record<string, { properties?: object }>;
      headers: object;
    };
  };
  const fields = Object.values(components.schemas).flatMap(({ properties = {} }) => Object.keys(properties));
  const parameters = Object.values(paths).flatMap(({ get, post }) => (get ?? post)?.parameters ?? []);
  expect(new Set(parameters.map(({ name }) => name)).size).toBe(4);
  const names = [
    ...Object.keys(paths),
    ...fields,
    ...Object.keys(components.headers),
    ...parameters.map(({ name }) => name),
  ];
  for (const name of [...names, ...publicCodes.filter((code) => code !== 'not_found' && code !== 'method_not_allowed')])
    expect([name, new RegExp(`<code>(GET |POST )?${name}</code>`).test(page.text)]).toEqual([name, true]);
});

test.each(['/docs', '/openapi.json'])(
  '%s answers HEAD like GET without a body, and refuses other methods',
  async (path) => {
    const [get, head] = await Promise.all(['GET', 'HEAD'].map((method) => send(app.url + path, { method })));
    expect(head).toMatchObject({ status: 200, text: '' });
    for (const name of ['content-type', 'content-length', 'content-security-policy'])
      expect(head?.headers[name]).toBe(get?.headers[name]);
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      const answer = await send(app.url + path, { method });
      expectError(answer, { status: 405, code: 'method_not_allowed', error: 'Method not allowed' });
      expect(answer.headers['allow']).toBe('GET, HEAD');
    }
  },
);
