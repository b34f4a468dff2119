import { describe, expect, test } from 'vitest';
import { causeOf, connectionFailure, TimedOut, useProxy } from '../../src/base/connection-cause.ts';
import { outboundProxy, proxyFor, unusedProxyFor } from '../../src/base/outbound-proxy.ts';

function failing(code: string, { message = code, syscall }: { message?: string; syscall?: string } = {}): Error {
  return Object.assign(new Error(message), { code, ...(syscall && { syscall }) });
}

const fetchFailed = (cause: unknown) => new TypeError('fetch failed', { cause });

test.each<[string, unknown]>([
  ['name_unknown', failing('ENOTFOUND', { message: 'getaddrinfo ENOTFOUND x.invalid' })],
  ['name_not_looked_up', failing('EAI_AGAIN')],
  ['refused', failing('ECONNREFUSED')],
  ['refused', failing('ENOENT', { syscall: 'connect' })],
  ['unreachable', failing('EHOSTUNREACH')],
  ['unreachable', failing('ENETUNREACH')],
  ['unreachable', failing('EACCES', { syscall: 'connect' })],
  ['timed_out', failing('ETIMEDOUT')],
  ['timed_out', failing('UND_ERR_CONNECT_TIMEOUT')],
  ['timed_out', failing('UND_ERR_HEADERS_TIMEOUT')],
  ['timed_out', new DOMException('aborted', 'AbortError')],
  ['timed_out', new TimedOut('5 s')],
  ['broken_off', failing('ECONNRESET')],
  ['broken_off', failing('EPIPE')],
  ['broken_off', failing('UND_ERR_SOCKET', { message: 'other side closed' })],
  ['certificate_untrusted', failing('DEPTH_ZERO_SELF_SIGNED_CERT')],
  ['certificate_untrusted', failing('SELF_SIGNED_CERT_IN_CHAIN')],
  ['certificate_untrusted', failing('UNABLE_TO_VERIFY_LEAF_SIGNATURE')],
  ['certificate_untrusted', failing('UNABLE_TO_GET_ISSUER_CERT')],
  ['certificate_untrusted', failing('UNABLE_TO_GET_ISSUER_CERT_LOCALLY')],
  ['certificate_untrusted', failing('CERT_REVOKED')],
  ['certificate_expired', failing('CERT_HAS_EXPIRED')],
  ['certificate_not_yet_valid', failing('CERT_NOT_YET_VALID')],
  ['certificate_for_another_name', failing('ERR_TLS_CERT_ALTNAME_INVALID')],
  ['no_tls', failing('EPROTO', { message: 'write EPROTO 139:error:0A00010B:SSL routines::wrong version number' })],
  ['no_tls', failing('ERR_SSL_WRONG_VERSION_NUMBER', { message: 'SSL routines::wrong version number' })],
  ['tls_failed', failing('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')],
  ['tls_failed', failing('EPROTO', { message: 'sslv3 alert handshake failure' })],
  ['no_http', failing('HPE_INVALID_CONSTANT')],
  ['proxy_refused', failing('ERR_PROXY_TUNNEL')],
  ['proxy_refused', failing('UND_ERR_ABORTED', { message: 'Proxy response (407) !== 200 when HTTP Tunneling' })],
  ['redirected', new Error('unexpected redirect')],
])('%s is found at any depth of the error that Node.js reports: %s', (cause, error) => {
  expect([causeOf(error), causeOf(fetchFailed(error))]).toEqual([cause, cause]);
  expect(causeOf(fetchFailed(new Error('outer', { cause: error })))).toBe(cause);
});

test('a refusal by the proxy is reported as the cause, although undici aborts the request', () => {
  const refusal = failing('UND_ERR_ABORTED', { message: 'Proxy response (407) !== 200 when HTTP Tunneling' });
  refusal.name = 'AbortError';
  const cancelled = new DOMException('Request was cancelled.', { name: 'AbortError', cause: refusal });
  expect(causeOf(fetchFailed(cancelled))).toBe('proxy_refused');
});

test('of several failed addresses, the most informative failure is reported', () => {
  const both = (...codes: string[]) =>
    fetchFailed(Object.assign(new AggregateError(codes.map((code) => failing(code))), { code: codes[0] }));
  expect(causeOf(both('ENETUNREACH', 'ECONNREFUSED'))).toBe('refused');
  expect(causeOf(both('ENETUNREACH', 'ETIMEDOUT'))).toBe('timed_out');
  expect(causeOf(both('EHOSTUNREACH', 'ENETUNREACH'))).toBe('unreachable');
});

test('an error that is not about a connection, or is its own cause, has no connection cause', () => {
  const round = new Error('round');
  round.cause = round;
  for (const error of [
    round,
    failing('ENOENT', { syscall: 'open' }),
    failing('EACCES', { syscall: 'open' }),
    'text',
    undefined,
  ])
    expect(causeOf(error)).toBeUndefined();
  expect(connectionFailure(failing('EMFILE'), { at: 'x' })).toMatchObject({
    cause: 'failed',
    words: 'the connection failed (EMFILE)',
  });
});

describe('a proxy', () => {
  test.each(['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'EHOSTUNREACH'])(
    'that is used is reported as the failed server for %s',
    (code) => {
      const { words, hint } = connectionFailure(failing(code), { at: 'apis.roblox.com', usedProxy: 'HTTPS_PROXY' });
      expect(words).toMatch(new RegExp(`^the proxy in HTTPS_PROXY can't be reached because .* \\(${code}\\)$`));
      expect(hint).toBe('check the address of the proxy in HTTPS_PROXY, and that the proxy is running');
    },
  );

  const address = 'https://apis.roblox.com';
  const unused = (env: Record<string, string>) => unusedProxyFor(address, outboundProxy(env))?.variable;

  test.each<[Record<string, string>, string]>([
    [{ HTTPS_PROXY: 'http://proxy:3128' }, 'HTTPS_PROXY'],
    [{ https_proxy: 'http://proxy:3128' }, 'https_proxy'],
    [{ ALL_PROXY: 'http://proxy:3128' }, 'ALL_PROXY'],
    [{ HTTPS_PROXY: 'http://proxy:3128', NODE_USE_ENV_PROXY: '0' }, 'HTTPS_PROXY'],
    [{ HTTPS_PROXY: 'http://proxy:3128', NODE_OPTIONS: '--no-use-env-proxy', NODE_USE_ENV_PROXY: '1' }, 'HTTPS_PROXY'],
    [{ ALL_PROXY: 'http://proxy:3128', NODE_USE_ENV_PROXY: '1' }, 'ALL_PROXY'],
    [{ HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: 'apis.roblox.com:8443,blox.com' }, 'HTTPS_PROXY'],
  ])('that is not used with the environment %o is found: %s', (env, variable) => {
    expect(unused(env)).toBe(variable);
  });

  test.each<Record<string, string>>([
    {},
    { HTTPS_PROXY: '' },
    { HTTP_PROXY: 'http://proxy:3128' },
    { HTTPS_PROXY: 'http://proxy:3128', NODE_USE_ENV_PROXY: '1' },
    { HTTPS_PROXY: 'http://proxy:3128', NODE_OPTIONS: '--use-env-proxy' },
    { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: 'example.com, .roblox.com' },
    { HTTPS_PROXY: 'http://proxy:3128', no_proxy: '*' },
    { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: 'apis.roblox.com:443' },
  ])('is not reported as unused with the environment %o', (env) => {
    expect(unused(env)).toBeUndefined();
  });

  test.each<[version: string, isUsed: boolean]>([
    ['22.14.0', false],
    ['22.20.0', false],
    ['22.21.0', true],
    ['23.11.0', false],
    ['24.4.1', false],
    ['24.5.0', true],
    ['25.0.0', true],
  ])('that NODE_USE_ENV_PROXY enables is used by Node.js %s: %s', (version, isUsed) => {
    const proxy = outboundProxy(
      { HTTPS_PROXY: 'http://proxy:3128', NODE_USE_ENV_PROXY: '1' },
      { version, options: [] },
    );
    const tooOld = { variable: 'HTTPS_PROXY', tooOldNode: version };
    expect(unusedProxyFor(address, proxy)).toEqual(isUsed ? undefined : tooOld);
    if (!isUsed) expect(useProxy(tooOld)).toContain(`NODE_USE_ENV_PROXY does not work on Node.js ${version}`);
  });

  test.each<[options: string[], isUsed: boolean]>([
    [['--use-env-proxy'], true],
    [['--use_env_proxy'], true],
    [['--use-env-proxy', '--no-use-env-proxy'], false],
    [[], false],
  ])('is used with the Node.js options %o: %s', (options, isUsed) => {
    const proxy = outboundProxy({ HTTPS_PROXY: 'http://proxy:3128' }, { version: '24.21.0', options });
    expect(unusedProxyFor(address, proxy) === undefined).toBe(isUsed);
  });

  test('for http addresses comes from HTTP_PROXY', () => {
    const proxy = outboundProxy({ HTTP_PROXY: 'http://user:pass@proxy:3128' });
    expect(proxyFor('http://127.0.0.1:1', proxy)).toBe('HTTP_PROXY');
    expect(JSON.stringify(proxy)).not.toContain('pass');
  });

  test('that is not used is named in the message with the variable that enables it, except for a bad certificate', () => {
    const failureFor = (code: string) =>
      connectionFailure(failing(code), { at: 'apis.roblox.com', unusedProxy: { variable: 'HTTPS_PROXY' } });
    expect(failureFor('ENOTFOUND')).toMatchObject({
      words: 'its host name does not exist (ENOTFOUND), and rankd does not use the proxy in HTTPS_PROXY',
      hint: expect.stringContaining('NODE_USE_ENV_PROXY=1'),
    });
    expect(failureFor('CERT_HAS_EXPIRED').words).toBe('its certificate has expired (CERT_HAS_EXPIRED)');
  });
});
