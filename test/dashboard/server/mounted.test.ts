import { expect, test } from 'vitest';
import { DaemonHere } from '../../support/daemon-here.ts';
import { PageVisitor } from '../../support/page-visitor.ts';
import { CliHome } from '../../support/run-cli.ts';

const RANKD_SERVER_PUBLIC_URL = 'https://rankd.example.com';

test('with dashboard.path, the API’s port serves the page below that path, with its login, headers and rules, next to the API', async () => {
  using home = new CliHome();
  const key = await home.createKey();
  await using daemon = await DaemonHere.start(home, { env: { RANKD_DASHBOARD_PATH: '/page' } });
  const { url } = await home.json<{ url: string }>('dashboard');
  expect(url).toMatch(new RegExp(`^${daemon.url}/page/login#[\\w-]{22}$`));

  const visitor = new PageVisitor(url);
  expect(await visitor.get('/api/session')).toMatchObject({ status: 401, json: { code: 'no_session' } });
  expect(await visitor.logIn()).toMatchObject({ status: 200 });
  expect((await visitor.read('/api/status')).status).toMatchObject({ url: daemon.url, dashboard: { sessions: 1 } });
  const foreign = { 'sec-fetch-site': 'cross-site' };
  expect(await visitor.post('/api/keys/pause', { key: 'game' }, foreign)).toMatchObject({ status: 403 });
  expect(await visitor.get('/api/session', { host: 'evil.example' })).toMatchObject({ status: 421 });
  const tooLong = await visitor.post('/api/keys/pause', { key: 'x'.repeat(70_000) });
  expect(tooLong).toMatchObject({ status: 413, json: { code: 'body_too_large' } });
  expect(await visitor.post('/api/keys/pause', { key: 'game' })).toMatchObject({ status: 200 });
  expect(await visitor.get('/nothing')).toMatchObject({ status: 404, json: { code: 'not_found' } });

  expect(await daemon.rank(key)).toMatchObject({ json: { code: 'key_paused' } });
  expect((await fetch(`${daemon.url}/api/session`)).status).toBe(404);
  using stream = await visitor.listen();
  expect(await daemon.stop()).toBe(0); // does not wait for the open stream
  await expect.poll(() => stream.isOver).toBe(true);
});

test('without dashboard.path, the API’s port has no page', async () => {
  using home = new CliHome();
  await using daemon = await DaemonHere.start(home);
  for (const path of ['/page', '/page/api/session']) expect((await fetch(daemon.url + path)).status).toBe(404);
});

test('behind an https server.public_url, the link begins with that address, and the cookie is only sent over TLS', async () => {
  using home = new CliHome();
  await using daemon = await DaemonHere.start(home, {
    env: { RANKD_DASHBOARD_PATH: '/page', RANKD_SERVER_PUBLIC_URL },
  });
  const { url } = await home.json<{ url: string }>('dashboard');
  expect(url).toMatch(/^https:\/\/rankd\.example\.com\/page\/login#/);
  const visitor = new PageVisitor(url.replace(RANKD_SERVER_PUBLIC_URL, daemon.url));
  const proxied = { host: 'rankd.example.com' };
  const answer = await visitor.post('/api/login', { link: visitor.secret }, proxied);
  expect(answer).toMatchObject({ status: 200 });
  expect(String(answer.headers['set-cookie'])).toMatch(/^__Host-rankd=.*; Secure$/);
});

test('an invalid path, or one that the API itself uses, is refused', async () => {
  using home = new CliHome();
  for (const path of ['page', '/v1', '/docs', '/', '/a b', '/page/']) {
    const { code, stderr } = await home.here(['config', 'check'], { env: { RANKD_DASHBOARD_PATH: path } });
    expect({ code, stderr }).toEqual({ code: 78, stderr: expect.stringContaining('RANKD_DASHBOARD_PATH: ') });
  }
});
