import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { actions } from '../../src/dashboard/server/actions.ts';
import { safeHeaders } from '../../src/dashboard/server/page-server.ts';
import { openTestPage, type TestPage } from '../support/open-test-page.ts';
import { PageVisitor } from '../support/page-visitor.ts';

let page: TestPage;
let operator: PageVisitor;

beforeAll(async () => {
  page = await openTestPage();
  operator = await page.loggedIn();
});

afterAll(() => page[Symbol.asyncDispose]());

const reading = [
  '/api/session',
  '/api/status',
  '/api/budget',
  '/api/changes',
  '/api/change?id=chg_1',
  '/api/undo?change=chg_1',
  '/api/run?id=undo_1',
  '/api/keys',
  '/api/member?user=1001',
  '/api/roles',
  '/api/setup',
  '/api/people',
  '/api/suspensions',
  '/api/webhooks',
  '/api/chart',
];
const acting = ['/api/active', '/api/logout', ...Object.keys(actions).map((path) => `/api/${path}`)];

describe('without a session', () => {
  test('every request below /api is refused', async () => {
    const { origin } = operator;
    const stranger = new PageVisitor(`${origin}/login#${'x'.repeat(22)}`);
    for (const path of [...reading, '/api/events'])
      expect(await stranger.get(path), path).toMatchObject({ status: 401, json: { code: 'no_session' } });
    for (const path of acting)
      expect(await stranger.post(path), path).toMatchObject({ status: 401, json: { code: 'no_session' } });
  });
});

describe('a cookie that a service on a different port has seen', () => {
  test('is refused without the token', async () => {
    const thief = { 'x-rankd-token': undefined };
    for (const path of [...reading, '/api/events'])
      expect(await operator.get(path, thief), path).toMatchObject({ status: 401, json: { code: 'no_session' } });
    for (const path of acting) {
      const answer = await operator.post(path, {}, thief);
      expect(answer, path).toMatchObject({ status: 403, json: { code: 'not_from_page' } });
    }
    const wrong = { 'x-rankd-token': 'x'.repeat(43) };
    expect(await operator.post('/api/logout', {}, wrong)).toMatchObject({ status: 403 });
    expect(await operator.read('/api/session')).toMatchObject({ v: 1 });
  });

  test('is refused if it is sent twice, so no page can replace it', async () => {
    const cookie = `${operator.cookie}; ${operator.cookie.replace(/=.*/, '=other')}`;
    expect(await operator.get('/api/session', { cookie })).toMatchObject({ status: 401 });
  });
});

describe('requests from another page', () => {
  test.each([
    { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:9999' },
    { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': undefined },
    { 'sec-fetch-site': undefined, origin: 'null' },
    { 'sec-fetch-site': undefined, origin: 'http://127.0.0.1:9999' },
    { 'sec-fetch-site': 'same-origin, cross-site' },
  ])('are refused despite a valid cookie and token: %o', async (headers) => {
    for (const path of ['/api/login', ...acting])
      expect(await operator.post(path, {}, headers), path).toMatchObject({
        status: 403,
        json: { code: 'not_from_page' },
      });
  });

  test('are refused for reads as well, and use up no stream', async () => {
    for (const path of ['/api/status', '/api/events'])
      for (const site of ['same-site', 'cross-site'])
        expect(await operator.get(path, { 'sec-fetch-site': site })).toMatchObject({ status: 403 });
  });

  test('are counted in the audit, with the path, the site and the source address', async () => {
    const headers = { 'sec-fetch-site': 'same-site', origin: 'http://127.0.0.1:9999' };
    await using other = await openTestPage();
    const visitor = await other.loggedIn();
    for (let n = 0; n < 15; n += 1) await visitor.post('/api/keys/pause', { key: 'x' }, headers);
    await other.app.app.refused.flush(other.app.app);
    const events = await other.app.store.listAudit({ action: 'dashboard.refuse', limit: 100 });
    const asked = { path: '/api/keys/pause', site: 'same-site', origin: 'http://127.0.0.1:9999', from: '127.0.0.1' };
    expect(events).toMatchObject([{ by: 'daemon', detail: { code: 'not_from_page', ...asked, count: 15 } }]);
  });

  test('cannot fill the disk: the audit lists ten kinds and one total for the rest, without a secret', async () => {
    await using other = await openTestPage();
    const visitor = await other.loggedIn();
    for (let n = 0; n < 30; n += 1)
      await visitor.post('/api/keys/pause', {}, { 'sec-fetch-site': `made-up-${n}`, origin: `http://${n}.example` });
    await other.app.app.refused.flush(other.app.app);
    const events = await other.app.store.listAudit({ action: 'dashboard.refuse', limit: 100 });
    expect(events).toHaveLength(11);
    expect(events.reduce((sum, { detail }) => sum + Number(detail['count']), 0)).toBe(30);
    expect(JSON.stringify(events)).not.toContain(visitor.token);
  });

  test('with a body that a form can send are refused', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', undefined]) {
      const answer = await operator.post('/api/keys/pause', '{"key":"main"}', { 'content-type': type });
      expect(answer).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
    }
  });
});

describe('a host name', () => {
  test.each(['evil.example', 'evil.example:7266', '127.0.0.1', '127.0.0.1:1', '0.0.0.0', 'localhost.', '', '[::2]'])(
    'of a different site, as after DNS rebinding, is refused everywhere: %j',
    async (host) => {
      const { port } = new URL(operator.origin);
      const withPort = /:\d+$/.test(host) || host === '' || host === '127.0.0.1' ? host : `${host}:${port}`;
      for (const path of ['/', '/login', '/api/session', '/api/status', '/nothing'])
        expect(await operator.get(path, { host: withPort === '' ? ' ' : withPort })).toMatchObject({
          status: 421,
          json: { code: 'wrong_host' },
        });
      const answer = await operator.post('/api/login', { link: operator.secret }, { host: withPort || ' ' });
      expect(answer).toMatchObject({ status: 421 });
    },
  );

  test('of the page is accepted', async () => {
    const { port } = new URL(operator.origin);
    for (const name of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]'])
      expect(await operator.get('/api/session', { host: `${name}:${port}` })).toMatchObject({ status: 200 });
  });

  test('that is missing or sent twice is refused', async () => {
    const { host } = new URL(operator.origin);
    for (const lines of [`Host: ${host}\r\nHost: evil.example\r\n`, '']) {
      const request = `GET /api/session HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`;
      expect(await receivedFor(request)).toMatch(/^HTTP\/1\.1 421 /);
    }
  });
});

describe('guesses', () => {
  test('of links are limited after ten, and the right link still works', async () => {
    await using other = await openTestPage();
    const visitor = await other.withLink();
    for (let n = 0; n < 10; n += 1) expect(await visitor.logIn(`guess${n}`)).toMatchObject({ status: 403 });
    const eleventh = await visitor.logIn('guess');
    expect(eleventh).toMatchObject({ status: 429, json: { code: 'too_many_requests' } });
    expect(eleventh.headers['retry-after']).toBe(String(eleventh.json.retryAfter));
    expect(await visitor.logIn()).toMatchObject({ status: 200 });
  });

  test('with malformed links all fail', async () => {
    for (const link of [null, 0, {}, [], true, '', 'undefined', 'x'.repeat(10_000), '__proto__'])
      expect((await operator.post('/api/login', { link })).status).toBeGreaterThanOrEqual(403);
  });
});

describe('bodies', () => {
  test.each(['', 'nonsense', '[]', 'null', '"text"', '7', '{"key":', '\u0000', '{"key":"\ud800"'])(
    'that are not a JSON object get 400: %j',
    async (body) => {
      const answer = await operator.send('/api/keys/pause', { method: 'POST', body: body || ' ' });
      expect(answer).toMatchObject({ status: 400, json: { code: 'invalid_request' } });
    },
  );

  test('larger than 64 KiB get 413, with or without a Content-Length', async () => {
    const body = JSON.stringify({ key: 'x'.repeat(65_600) });
    expect(await operator.send('/api/keys/pause', { method: 'POST', body })).toMatchObject({ status: 413 });
    const chunked = { 'transfer-encoding': 'chunked' };
    expect(await operator.send('/api/keys/pause', { method: 'POST', body, headers: chunked })).toMatchObject({
      status: 413,
    });
  });

  test.each([
    ['/api/undo', { ids: [] }, 'ids'],
    ['/api/undo', { ids: 'chg_1' }, 'ids'],
    ['/api/undo', { ids: ['chg_1', 7] }, 'ids'],
    ['/api/undo', { ids: ["chg_1' OR 1=1"] }, 'ids'],
    ['/api/undo', { ids: Array.from({ length: 501 }, (_, n) => `chg_${n}`) }, 'ids'],
    ['/api/keys/pause', { key: ['main'] }, 'key'],
    ['/api/keys/pause', { key: 'x'.repeat(101) }, 'key'],
    ['/api/suspensions/test', { user: '1001' }, 'user'],
    ['/api/suspensions/lift', { user: '1001' }, 'user'],
    ['/api/suspensions/lift', { user: -1 }, 'user'],
    ['/api/suspensions/lift', { user: 1001, force: 'yes' }, 'force'],
    ['/api/suspensions/lift', { user: 1001, reason: 'x'.repeat(201) }, 'reason'],
    ['/api/webhooks/test', {}, 'webhook'],
  ])('for %s such as %j get 400 with the field %s', async (path, body, field) => {
    expect(await operator.post(path, body)).toMatchObject({ status: 400, json: { code: 'invalid_request', field } });
  });
});

describe('queries', () => {
  test.each([
    ['user=1001x*', 'user'],
    ['user=<img>', 'user'],
    ['user=0', 'user'],
    ['user=99999999999999999999', 'user'],
    ['ranker=x', 'ranker'],
    ['key=nobody', 'key'],
    ['place=-1', 'place'],
    ['state=done', 'state'],
    ['since=yesterday', 'since'],
    ['since=2026-02-30', 'since'],
    ['until=99999999999999999999d', 'until'],
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['since=1h&since=2h', 'since'],
  ])('with an invalid filter get 400 with its field: %s', async (query, field) => {
    await using other = await openTestPage();
    const visitor = await other.loggedIn();
    expect(await visitor.get(`/api/changes?${query}`)).toMatchObject({
      status: 400,
      json: { success: false, code: 'invalid_request', field },
    });
  });

  test.each(['', 'key=main', 'since=1h', 'user=ann', 'change=chg_1%27', 'change='])(
    'for an undo without a clear selection get 400: %j',
    async (query) => {
      await using other = await openTestPage();
      await other.app.createKey();
      const visitor = await other.loggedIn();
      expect(await visitor.get(`/api/undo?${query}`)).toMatchObject({ status: 400 });
    },
  );

  test('for unknown paths get 404, and no file of the machine is served', async () => {
    const files = [
      '/..%2f..%2fetc%2fpasswd',
      '/../../etc/passwd',
      '//evil.example/',
      '/%',
      '/index.html%00',
      '/%C3%A9',
    ];
    for (const path of [...files, '/api/', '/api/__proto__', '/constructor', '/api/constructor', '/API/status'])
      expect((await operator.get(path)).status, path).toBe(404);
    expect(await operator.send('/api/status', { method: 'DELETE' })).toMatchObject({ status: 405 });
    expect((await operator.get('/api/login')).headers['allow']).toBe('POST');
    expect((await operator.post('/api/status')).headers['allow']).toBe('GET, HEAD');
  });
});

describe('under load,', () => {
  test('a session that reads too often gets 429', async () => {
    await using other = await openTestPage();
    const visitor = await other.loggedIn();
    const answers = await Promise.all(Array.from({ length: 40 }, () => visitor.get('/api/budget')));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(20);
    expect(answers.find(({ status }) => status === 429)?.json).toMatchObject({
      code: 'too_many_requests',
      retryAfter: 1,
    });
    expect(await visitor.read('/api/session')).toMatchObject({ v: 1 });
  });

  test('the eleventh stream gets 503, and a stream that ends makes room for another', async () => {
    await using other = await openTestPage();
    const visitor = await other.loggedIn();
    const streams = await Promise.all(Array.from({ length: 10 }, () => visitor.listen()));
    expect(streams.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(await visitor.get('/api/events')).toMatchObject({ status: 503, json: { code: 'too_many_streams' } });
    streams[0]?.[Symbol.dispose]();
    await expect
      .poll(async () => {
        const stream = await visitor.listen();
        const { status } = stream;
        stream[Symbol.dispose]();
        return status;
      })
      .toBe(200);
    for (const stream of streams) stream[Symbol.dispose]();
  });

  test('a request without the token and a HEAD request use up no stream', async () => {
    await using other = await openTestPage();
    const visitor = await other.loggedIn();
    const cookieAlone = { 'x-rankd-token': undefined };
    for (let n = 0; n < 20; n += 1)
      expect(await visitor.get('/api/events', cookieAlone)).toMatchObject({ status: 401 });
    for (let n = 0; n < 20; n += 1)
      expect(await visitor.send('/api/events', { method: 'HEAD' })).toMatchObject({
        status: 200,
        headers: { 'content-type': 'text/event-stream; charset=utf-8' },
      });
    using stream = await visitor.listen();
    expect(stream.status).toBe(200);
  });

  test('an unfinished request blocks no other caller', async () => {
    const { hostname, port } = new URL(operator.origin);
    const socket = connect(Number(port), hostname);
    socket.write('POST /api/login HTTP/1.1\r\nHost: ');
    expect(await operator.read('/api/session')).toMatchObject({ v: 1 });
    socket.destroy();
  });

  test('bytes that are not HTTP get a response with all security headers', async () => {
    for (const bytes of ['nonsense\r\n\r\n', 'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n']) {
      const received = await receivedFor(bytes);
      expect(received).toMatch(/\r\n\r\n\{"success":false,.*"requestId":"req_\w+"\}$/);
      for (const [name, value] of Object.entries(safeHeaders)) expect(received).toContain(`${name}: ${value}`);
    }
  });
});

async function receivedFor(bytes: string): Promise<string> {
  const { hostname, port } = new URL(operator.origin);
  const socket = connect(Number(port), hostname);
  socket.write(bytes);
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  await once(socket, 'close');
  return received;
}

test('a hostile name from a game is text in the response body, and in no header', async () => {
  const name = '<img src=x onerror=alert(1)>\r\nset-cookie: a=b\u2028';
  const key = await page.app.createKey({ name: 'hostile' });
  await page.app.rank(key, { rankeeId: 1001, rankeeName: name, newRankId: 20 });
  const answer = await operator.get('/api/changes');
  expect(answer.json.changes[0].rankeeName).toBe(name);
  expect(answer.headers['set-cookie']).toBeUndefined();
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(answer.text).not.toContain('\u2028');
});

test('neither the log nor the audit has a link, a cookie or a token', async () => {
  const written = page.app.logLines.join('\n') + JSON.stringify(await page.app.store.listAudit({ limit: 1_000 }));
  expect(written).toContain('/api/');
  for (const secret of [operator.secret, operator.token, operator.cookie.split('=')[1]])
    expect(written).not.toContain(secret);
});

test('a game key in the address of a refused request is not in the log', async () => {
  const key = await page.app.createKey({ name: 'misplaced' });
  for (const path of [`/api/${key}`, `/${key}/x`, `/api/%zz${key}`])
    expect((await operator.post(path)).status, path).toBe(404);
  const lines = page.app.logLines.filter(
    (line) => line.includes('"listener":"dashboard"') && line.includes('not_found'),
  );
  expect(lines.length).toBeGreaterThanOrEqual(3);
  expect(page.app.logLines.join('\n')).not.toContain(key.slice(12));
});
