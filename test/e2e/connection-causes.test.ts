import dns from 'node:dns';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { codeOf, rankBody } from '../support/answers.ts';
import { BuiltSession } from '../support/built-session.ts';
import { Authority, type Credentials } from '../support/certificates.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { CliHome } from '../support/run-cli.ts';
import { send } from '../support/send.ts';

/** Produces each cause with real sockets, for Roblox, a webhook and PostgreSQL. */

const trusted = new Authority();
const name = 'localhost';

interface Case {
  cause: string;
  /** Replaces the cause as the case's name. */
  title?: string;
  env?: Record<string, string>;
  words: RegExp;
  hint: RegExp;
  storeHint?: RegExp;
  webhookMessage?: RegExp;
  storeMessage?: RegExp;
  /** Returns an address that fails in this way for a client of `protocol`. */
  place: (protocol: 'https' | 'postgres') => Promise<string>;
  /** True if only a child process, which can trust the tests' CA, gets as far as this failure. */
  isChild?: true;
  /** True if only Roblox can fail in this way, because webhooks accept the response and PostgreSQL can't produce it. */
  isOnlyForRoblox?: true;
  /** True if rankd responds to a game at once, without retrying until the deadline. */
  isPermanent: boolean;
}

const cases: Case[] = [
  {
    cause: 'name_unknown',
    words: /its host name does not exist \(ENOTFOUND\)/,
    hint: /spelling of rankd\.invalid/,
    place: async () => 'rankd.invalid:443',
    isPermanent: true,
  },
  {
    cause: 'refused',
    words: /it refuses connections \(ECONNREFUSED\)/,
    hint: /check that a server is listening at localhost:\d+/,
    place: closedPort,
    isPermanent: false,
  },
  {
    cause: 'unreachable',
    words: /the network has no route to it \((ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL)\)/,
    hint: /check this machine's network and firewall/,
    place: async () => '224.0.0.1:443', // a TCP connection to a multicast address is impossible
    isPermanent: false,
  },
  {
    cause: 'timed_out',
    words: /it does not respond in time/,
    hint: /firewall drops connections to localhost:\d+/,
    place: () => listen(createTcp(keep)),
    isPermanent: false,
  },
  {
    cause: 'broken_off',
    words: /the connection was lost/,
    hint: /if it keeps failing, check for a firewall/,
    place: () => listen(createTcp((socket) => socket.once('data', () => socket.resetAndDestroy()))),
    isPermanent: false,
  },
  {
    cause: 'certificate_untrusted',
    words:
      /its certificate is not trusted \((UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT_LOCALLY)\)/,
    hint: /NODE_EXTRA_CA_CERTS.*NODE_USE_SYSTEM_CA=1/,
    storeHint: /store\.ca_file/,
    place: (protocol) => overTls(protocol, new Authority().issue({ name })),
    isPermanent: true,
  },
  {
    cause: 'certificate_expired',
    words: /its certificate has expired \(CERT_HAS_EXPIRED\)/,
    hint: /date and time; .* needs a new certificate/,
    place: (protocol) => overTls(protocol, trusted.issue({ name, endsInDays: -3 })),
    isChild: true,
    isPermanent: true,
  },
  {
    cause: 'certificate_not_yet_valid',
    words: /its certificate is not valid yet \(CERT_NOT_YET_VALID\)/,
    hint: /check this machine's date and time/,
    place: (protocol) => overTls(protocol, trusted.issue({ name, beginsInDays: 3 })),
    isChild: true,
    isPermanent: true,
  },
  {
    cause: 'no_tls',
    words: /it does not speak TLS/,
    hint: /whether a firewall or a proxy responds in its place/,
    place: () => listen(createHttp((_, response) => response.end('hello'))),
    isPermanent: true,
  },
  {
    cause: 'web_page',
    words: /a web page was returned instead/,
    hint: /on a network with a login page, log in first/,
    place: () =>
      listen(
        createHttps(trusted.issue({ name }), (_, response) =>
          response.setHeader('content-type', 'text/html; charset=utf-8').end('<h1>Log in</h1>'),
        ),
      ),
    isChild: true,
    isOnlyForRoblox: true,
    isPermanent: true,
  },
];

const refused = cases.find(({ cause }) => cause === 'refused');
if (refused !== undefined) {
  cases.push({
    ...refused,
    title: 'refused, with a proxy that is set and not used',
    env: { HTTPS_PROXY: 'http://user:geheim@proxy.invalid:3128' },
    words: /it refuses connections \(ECONNREFUSED\), and rankd does not use the proxy in HTTPS_PROXY/,
    hint: /set NODE_USE_ENV_PROXY=1/,
    webhookMessage: /it refuses connections \(ECONNREFUSED\); webhooks do not use the proxy in HTTPS_PROXY/,
    storeMessage: refused.words,
    storeHint: refused.hint,
  });
}

const servers: Server[] = [];
const sockets = new Set<Socket>();

afterAll(() => {
  for (const server of servers) server.close();
  for (const socket of sockets) socket.destroy();
});

const env = (home: CliHome) => ({ NODE_EXTRA_CA_CERTS: home.path('ca.pem') });

function keep(socket: Socket): void {
  sockets.add(socket.on('error', () => undefined));
}

/** Returns an address on a port that has no listener and that no other test can get. */
async function closedPort(): Promise<string> {
  return `${name}:2`;
}

async function listen(server: Server): Promise<string> {
  server.on('connection', keep).listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  return `localhost:${(server.address() as AddressInfo).port}`;
}

/**
 * A PostgreSQL client first negotiates TLS in plain text:
 * https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL
 */
function overTls(protocol: 'https' | 'postgres', credentials: Credentials): Promise<string> {
  if (protocol === 'https') return listen(createHttps(credentials, (_, response) => response.end('{}')));
  return listen(
    createTcp((socket) => {
      socket.once('data', () => {
        socket.write('S');
        new TLSSocket(socket, { isServer: true, ...credentials }).on('error', () => undefined);
      });
    }),
  );
}

test('a running daemon detects within seconds that Roblox’s host name resolves again, without a request from a game', async () => {
  await using system = await openCloudHome();
  const { port } = new URL(system.roblox.baseUrl);
  let isKnown = false;
  const real = dns.lookup;
  const lookup = vi.spyOn(dns, 'lookup').mockImplementation(((host: string, ...rest: unknown[]) => {
    if (host !== 'localhost' || isKnown) return Reflect.apply(real, dns, ['127.0.0.1', ...rest]);
    const answer = rest.at(-1) as (error: Error) => void;
    setImmediate(answer, Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' }));
  }) as typeof dns.lookup);
  onTestFinished(() => lookup.mockRestore());
  const url = `http://localhost:${port}`;
  const urls = {
    RANKD_PLATFORM_BASE_URL: url,
    RANKD_PLATFORM_LEGACY_BASE_URL: url,
    RANKD_PLATFORM_USERS_BASE_URL: url,
  };
  const daemon = await system.serve(urls);
  await expect.poll(() => daemon.log, { timeout: 10_000 }).toMatch(/its host name does not exist/);
  isKnown = true;
  await expect.poll(() => daemon.log, { timeout: 15_000 }).toMatch(/Roblox can be reached again/);
  await expect.poll(() => daemon.log, { timeout: 15_000 }).toMatch(/ranks in .* as /);
  expect((await system.home.here(['status'])).stdout).not.toMatch(/NOT REACHED/);
});

test.each<[string, () => Promise<string>, RegExp, RegExp]>([
  [
    'has an unknown name',
    async () => 'proxy.invalid:3128',
    /the proxy in HTTPS_PROXY can't be reached because its host name does not exist/,
    /check the address of the proxy in HTTPS_PROXY/,
  ],
  [
    'is not running',
    closedPort,
    /the proxy in HTTPS_PROXY can't be reached because it refuses connections/,
    /check the address of the proxy in HTTPS_PROXY/,
  ],
  [
    'refuses',
    () => listen(createHttp().on('connect', (_, socket) => socket.end('HTTP/1.1 407 Log In First\r\n\r\n'))),
    /the proxy does not allow the connection/,
    /check the proxy in HTTPS_PROXY or HTTP_PROXY/,
  ],
])('a command names the proxy, not Roblox, if the proxy %s', async (_, place, words, hint) => {
  using home = new CliHome();
  writeFileSync(home.path('roblox.key'), 'a-key', { mode: 0o600 });
  writeFileSync(
    home.path('rankd.yaml'),
    'group: { id: 700 }\nplatform: { api_key_file: roblox.key }\nserver: { deadline: 1s }\n',
  );
  const proxy = { NODE_USE_ENV_PROXY: '1', HTTPS_PROXY: `http://user:geheim@${await place()}` };
  await using session = new BuiltSession(home, proxy);
  const { code, stderr } = await session.run(['group', 'show']);
  expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringMatching(words) });
  expect(stderr).toMatch(hint);
  expect(stderr).not.toMatch(/geheim/);
});

const titled = cases.map((one) => ({ title: one.cause, ...one }));

test('an unreachable optional host does not cause repeated calls to Roblox', async () => {
  await using system = await openCloudHome();
  const daemon = await system.serve({ RANKD_PLATFORM_LEGACY_BASE_URL: `https://${await closedPort()}` });
  await expect.poll(() => daemon.log, { timeout: 15_000 }).toMatch(/Roblox can't be reached/);
  await delay(1_000);
  const { journal } = system.roblox;
  const before = journal.requests('introspect').length;
  await delay(11_000); // repeated calls would come every five seconds
  expect(journal.requests('introspect').length).toBe(before);
});

describe.each(titled)('$title', ({ cause, words, hint, place, isChild, isOnlyForRoblox, isPermanent, ...rest }) => {
  const { storeHint = hint, webhookMessage = words, storeMessage = words, env: ofCase = {} } = rest;
  let home: CliHome;
  let session: BuiltSession | undefined;
  const run = (...args: string[]) => session?.run(args) ?? home.here(args, { env: ofCase });
  const serve = () =>
    isChild ? DaemonProcess.start(home, { env: env(home) }) : DaemonHere.start(home, { env: ofCase });

  /** For a permanent failure, retrying until the deadline would exceed the test's time limit. */
  const deadline = isPermanent ? '5m' : cause === 'timed_out' ? '3s' : '1s';

  beforeAll(async () => {
    home = new CliHome();
    const url = `https://${await place('https')}`;
    writeFileSync(home.path('ca.pem'), trusted.pem);
    writeFileSync(home.path('roblox.key'), 'a-key', { mode: 0o600 });
    writeFileSync(home.path('target.url'), `${url}/hook`);
    writeFileSync(
      home.path('rankd.yaml'),
      `group: { id: 700 }
platform: { api_key_file: roblox.key, base_url: "${url}", legacy_base_url: "${url}", users_base_url: "${url}" }
webhooks: { timeout: 1s, allow_private: [127.0.0.0/8, 224.0.0.0/4, '::1'] }
server: { deadline: ${deadline} }
`,
    );
    if (isChild) session = new BuiltSession(home, env(home));
  });

  afterAll(async () => {
    await session?.[Symbol.asyncDispose]();
    home[Symbol.dispose]();
  });

  test('is reported by a command at once, with its hint, and by doctor once', async () => {
    const { code, stderr } = await run('group', 'show');
    expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringMatching(words) });
    expect(stderr).toMatch(hint);
    expect(stderr).not.toMatch(/caused by|geheim/);
    const verbose = (await run('group', 'show', '-v')).stderr;
    expect(verbose).toMatch(words);
    expect(verbose).toMatch(/^(\w*Error: |caused by: )/m);
    const { findings } = (await run('doctor', '--json')).json<{
      findings: Array<{ grade: string; text: string; fix: string }>;
    }>();
    const named = findings.filter(({ text }) => words.test(text));
    expect(named).toEqual([
      expect.objectContaining({ check: 'platform', grade: 'FAIL', fix: expect.stringMatching(hint) }),
    ]);
  });

  if (!isOnlyForRoblox) {
    test('is reported for a webhook', async () => {
      await run('webhook', 'add', 'bot', '--url-file', 'target.url', '--out', 'bot.secret');
      const { code, stdout, stderr } = await run('webhook', 'test', 'bot');
      expect({ code, said: stdout + stderr }).toEqual({ code: 69, said: expect.stringMatching(webhookMessage) });
    });

    test('is reported for PostgreSQL, with the setting to correct', async () => {
      const onServer = {
        RANKD_STORE_URL: `postgres://rankd@${await place('postgres')}/rankd`,
        ...{ ...ofCase, RANKD_STORE_TLS: 'verify', RANKD_STORE_CA_FILE: home.path('ca.pem') },
      };
      const { code, stderr } = await home.here(['key', 'list'], { env: onServer });
      expect({ isExpected: code === 69 || code === 78, stderr }).toEqual({
        isExpected: true,
        stderr: expect.stringMatching(storeMessage),
      });
      expect(stderr).toMatch(storeHint);
      expect(stderr).toMatch(/PostgreSQL/);
    });
  }

  test('is a field in the log within seconds, and is reported by status and readyz', async () => {
    await using daemon = await serve();
    const lines = () => daemon.log.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
    const named = () => lines().filter((line) => line.cause === cause && line.problem === 'platform');
    await expect.poll(named, { timeout: 8_000 }).not.toEqual([]);
    expect(named()[0]).toMatchObject({
      level: 'warn',
      msg: expect.stringMatching(words),
      hint: expect.stringMatching(hint),
    });
    const { stdout } = await home.here(['status']);
    expect(stdout).toMatch(/^Roblox +NOT REACHED: \S+ since 20\d\d-\S+Z: /m);
    expect(stdout).toMatch(words);
    const { status, body } = await fetch(`${daemon.url}/readyz`).then(async (answer) => ({
      status: answer.status,
      body: await answer.text(),
    }));
    expect({ status, body }).toEqual({ status: 503, body: expect.stringMatching(words) });
    expect(body).not.toMatch(/localhost|rankd\.invalid|224\.0\.0\.1/);
    expect(stdout + daemon.log + body).not.toContain('geheim');
  });

  if (isPermanent)
    test('does not delay the response to a game', async () => {
      const key = await home.createKey(`for-${cause}`);
      await using daemon = await serve();
      const answer = await send(`${daemon.url}/v1/ranker?placeid=1`, { method: 'POST', key, body: rankBody() });
      expect({ status: answer.status, code: codeOf(answer) }).toEqual({ status: 503, code: 'platform_unavailable' });
    });
});
