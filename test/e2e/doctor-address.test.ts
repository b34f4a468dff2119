import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener, request, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Authority, type Credentials, selfSigned } from '../support/certificates.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { openTestApp, send } from '../support/open-test-app.ts';
import { CliHome } from '../support/run-cli.ts';

interface Finding {
  check: string;
  grade: 'ok' | 'warn' | 'FAIL';
  text: string;
  fix: string | null;
}

let home: CliHome;
let daemon: DaemonHere;
const authority = new Authority();

beforeAll(async () => {
  home = new CliHome();
  writeFileSync(home.path('authority.pem'), authority.pem);
  daemon = await DaemonHere.start(home, { env: { RANKD_SERVER_PUBLIC_URL: 'https://rankd.example.com/' } });
});

afterAll(async () => {
  await daemon[Symbol.asyncDispose]();
  home[Symbol.dispose]();
});

async function found(url: string, { isChild = false } = {}): Promise<Finding[]> {
  const args = ['doctor', '--offline', '--json', '--url', url];
  // only a child process reads this variable, in order to trust the tests' CA
  const env = { NODE_EXTRA_CA_CERTS: home.path('authority.pem') };
  const result = isChild ? await home.run(args, { env }) : await home.here(args);
  const { findings } = result.json<{ findings: Finding[] }>();
  return findings.filter(({ check }) => ['address', 'name', 'reach', 'certificate', 'answer'].includes(check));
}

/** Forwards requests to the daemon as a reverse proxy does. */
const toDaemon: RequestListener = ({ method, url = '/', headers }, response) => {
  request(daemon.url + url, { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  }).end();
};

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function behindTls(credentials: Credentials): Promise<string> {
  return `https://localhost:${await listen(createTlsServer(credentials, toDaemon))}`;
}

async function plainly(handler: RequestListener): Promise<string> {
  return `http://localhost:${await listen(createServer(handler))}`;
}

test('behind a proxy with a valid certificate, doctor --url confirms the daemon, and reports that its name is not public', async () => {
  const url = await behindTls(authority.issue({ name: 'localhost' }));
  expect(await found(url, { isChild: true })).toEqual([
    {
      check: 'name',
      grade: 'warn',
      text: expect.stringMatching(/^localhost resolves to .*127\.0\.0\.1 here, which Roblox's servers can't reach$/),
      fix: expect.stringContaining('DNS record'),
    },
    { check: 'certificate', grade: 'ok', text: expect.stringMatching(/^valid until \d{4}-/), fix: null },
    { check: 'answer', grade: 'ok', text: 'it is this daemon', fix: null },
  ]);
  const [number] = await found(url.replace('localhost', '127.0.0.1'));
  expect(number).toMatchObject({
    text: "Roblox's servers can't reach 127.0.0.1",
    fix: expect.stringMatching(/^use a public address/),
  });
});

test('a certificate that games would reject is reported with the reason, and the server is still checked', async () => {
  const cases: Array<[Credentials, Finding['grade'], string, string]> = [
    [authority.issue({ name: 'localhost', endsInDays: -3 }), 'FAIL', '); it was valid until 2', 'renew it'],
    [authority.issue({ name: 'localhost', endsInDays: 3 }), 'warn', 'and has not been renewed yet', "the proxy's log"],
    [
      authority.issue({ name: 'router.lan' }),
      'FAIL',
      'it is for DNS:router.lan, not for localhost',
      'get one for localhost',
    ],
    [selfSigned({ name: 'localhost' }), 'FAIL', 'it is self-signed', "Let's Encrypt"],
    [new Authority().issue({ name: 'localhost' }), 'FAIL', 'without the rest of its chain', 'the whole chain'],
  ];
  const seen = await Promise.all(
    cases.map(async ([credentials]) => found(await behindTls(credentials), { isChild: true })),
  );
  expect(seen.map((findings) => findings.slice(1))).toEqual(
    cases.map(([, grade, text, fix]) => [
      { check: 'certificate', grade, text: expect.stringContaining(text), fix: expect.stringContaining(fix) },
      { check: 'answer', grade: 'ok', text: 'it is this daemon', fix: null },
    ]),
  );
});

describe('doctor --url detects a different server at the address, and prints the fix:', () => {
  const page: RequestListener = (_request, response) => response.end('<h1>Welcome</h1>');
  test.each<[string, RequestListener, string, RegExp]>([
    ['a page', page, 'the program that answers is not rankd (status 200)', /tunnel at http:\/\/127/],
    [
      'a proxy without rankd',
      (_, response) => response.writeHead(502).end(),
      "can't reach rankd (status 502)",
      /^point the proxy or the tunnel at/,
    ],
    [
      'a redirect',
      (_, response) => response.writeHead(301, { location: `https://elsewhere.example/${'x'.repeat(500)}` }).end(),
      'redirects games to https://elsewhere.example/xxx',
      /server\.public_url/,
    ],
    [
      'a server that closes the connection',
      ({ socket }) => socket.destroy(),
      'the connection was lost (ECONNRESET)',
      /its log/,
    ],
    [
      'an endless page',
      ({ socket }) => void socket.write(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(9_000)}`),
      'not rankd',
      /point the proxy or the tunnel at/,
    ],
  ])('%s', async (_, handler, text, fix) => {
    const [, answer, ...rest] = await found(await plainly(handler));
    expect(rest).toEqual([]);
    expect(answer).toEqual({
      check: 'answer',
      grade: 'FAIL',
      text: expect.stringContaining(text),
      fix: expect.stringMatching(fix),
    });
    expect(answer?.text.length).toBeLessThan(300);
  });

  test('a proxy that drops the game’s key', async () => {
    const url = await plainly((request, response) => {
      const { authorization: _, ...headers } = request.headers;
      toDaemon(Object.assign(request, { headers }), response);
    });
    expect((await found(url)).at(-1)).toMatchObject({
      grade: 'FAIL',
      text: expect.stringContaining('requests arrive without the Authorization header'),
      fix: expect.stringContaining('forward that header'),
    });
  });

  test('a different rankd', async () => {
    await using other = await openTestApp();
    expect((await found(other.url)).at(-1)).toMatchObject({
      grade: 'FAIL',
      text: 'a different rankd daemon answers, not the one of this data directory',
      fix: expect.stringContaining(daemon.url),
    });
  });

  test('a rankd while none is running on this data directory', async () => {
    const result = await home.here(['doctor', '--offline', '--json', '--url', daemon.url], {
      dataDir: home.path('none'),
    });
    expect(result.json<{ findings: Finding[] }>().findings.at(-1)).toMatchObject({
      check: 'answer',
      grade: 'warn',
      fix: expect.stringContaining('--data-dir'),
    });
  });
});

test('without a response, doctor reports the failed step: the port, the name, the connection, or TLS', async () => {
  const closed = createServer();
  const port = await listen(closed);
  await new Promise((resolve) => closed.close(resolve));
  const plain = await plainly(toDaemon);
  expect(await found('https://rankd.invalid:444')).toMatchObject([
    { check: 'address', grade: 'FAIL', text: "games can't reach port 444" },
    { check: 'name', grade: 'FAIL', text: expect.stringContaining('rankd.invalid') },
  ]);
  expect((await found(`http://localhost:${port}`)).slice(1)).toMatchObject([
    {
      check: 'reach',
      grade: 'FAIL',
      text: expect.stringContaining('(ECONNREFUSED)'),
      fix: expect.stringMatching(/^start/),
    },
  ]);
  // the system rejects connections to this address at once
  expect((await found('https://224.0.0.1')).slice(1)).toMatchObject([
    {
      check: 'reach',
      grade: 'FAIL',
      fix: expect.stringMatching(/phone with Wi-Fi off.*some routers can't reach their own public address from inside/),
    },
  ]);
  expect((await found(`https://localhost:${new URL(plain).port}`)).slice(1)).toMatchObject([
    { check: 'certificate', grade: 'FAIL', text: expect.stringContaining('does not speak TLS') },
  ]);
});

test('--url without a value means server.public_url; without that setting, doctor prints how to pass an address', async () => {
  const args = ['doctor', '--offline', '--json', '--url'];
  const last = async (env = {}) => (await home.here(args, { env })).json<{ findings: Finding[] }>().findings.at(-1);
  expect(await last()).toMatchObject({
    check: 'address',
    grade: 'FAIL',
    fix: expect.stringContaining('rankd doctor --url https'),
  });
  expect(await last({ RANKD_SERVER_PUBLIC_URL: daemon.url })).toMatchObject({ text: 'it is this daemon' });
});

test('status shows the public address', async () => {
  expect((await home.here(['status'])).stdout).toMatch(/^for games +https:\/\/rankd\.example\.com$/m);
  expect(await home.json('status')).toMatchObject({ status: { publicUrl: 'https://rankd.example.com' } });
});

test('a daemon proves its identity only on request, with a proof that differs for each question and daemon', async () => {
  await using other = await openTestApp();
  const ask = async (url: string, question?: string) => {
    const { headers } = await send(`${url}/healthz`, {
      headers: question === undefined ? {} : { 'x-rankd-question': question },
    });
    return headers['x-rankd-proof'];
  };
  const proofs = [await ask(daemon.url, 'one'), await ask(daemon.url, 'two'), await ask(other.url, 'one')];
  expect(new Set(proofs).size).toBe(3);
  expect(await ask(daemon.url, 'one')).toBe(proofs[0]);
  for (const question of [undefined, '', 'a b', 'x'.repeat(65)])
    expect(await ask(daemon.url, question)).toBeUndefined();
});
