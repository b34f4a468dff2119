import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Authority } from '../support/certificates.ts';
import { Sandbox } from './sandbox.ts';

let box: Sandbox;
beforeEach(() => {
  box = new Sandbox();
});
afterEach(() => box[Symbol.dispose]());

describe('PORT, which a platform sets,', () => {
  const listensOn = (env: Record<string, string>, file = '', flags = {}) => {
    box.write('rankd.yaml', file);
    const { config, origins } = box.load({ env, flags });
    const { host, port } = config.server;
    return [host, port, origins.get('server.host')?.at, origins.get('server.port')?.at];
  };

  test('is the port, on all addresses, if no setting names a host or a port', () => {
    expect(listensOn({ PORT: '27500' })).toEqual(['0.0.0.0', 27500, 'PORT', 'PORT']);
    expect(listensOn({ PORT: '' })).toEqual(['127.0.0.1', 7265, undefined, undefined]);
  });

  test('does not change a configured host, and has no effect if a port is configured', () => {
    expect(listensOn({ PORT: '27500' }, 'server: {host: 127.0.0.1}')).toEqual([
      '127.0.0.1',
      27500,
      'rankd.yaml:1:16',
      'PORT',
    ]);
    expect(listensOn({ PORT: '27500' }, 'server: {port: 1234}').slice(0, 2)).toEqual(['127.0.0.1', 1234]);
    expect(listensOn({ PORT: '27500', RANKD_SERVER_PORT: '1234' }).slice(0, 2)).toEqual(['127.0.0.1', 1234]);
    expect(listensOn({ PORT: '27500' }, '', { 'server.port': '1234' }).slice(0, 2)).toEqual(['127.0.0.1', 1234]);
  });

  test('is named in the error if it is not a port', () => {
    expect(box.failure({ env: { PORT: '$PORT' } }).message).toBe(
      'PORT: is "$PORT"; expected a whole number from 0 to 65535',
    );
  });
});

describe('RANKD_KEYS', () => {
  const hash = 'ab'.repeat(32);
  const other = 'cd'.repeat(32);

  test.each([
    ['YAML', `- name: game\n  hash: ${hash}\n  whitelist: [1, 2]\n`],
    ['YAML in one line', `[{name: game, hash: ${hash}, whitelist: [1, 2]}]`],
    ['JSON', JSON.stringify([{ name: 'game', hash, whitelist: [1, 2] }])],
  ])('contains the keys as %s, and replaces those in the file', (_, RANKD_KEYS) => {
    box.write('rankd.yaml', `keys: [{name: old, hash: ${other}}]`);
    const { keys } = box.load({ env: { RANKD_KEYS } }).config;
    expect(keys).toMatchObject([{ name: 'game', hash, declaredIn: 'RANKD_KEYS', whitelist: { placeIds: [1, 2] } }]);
  });

  test.each([
    ['a word', 'game', 'RANKD_KEYS: is "game"; expected a list of keys, in YAML or JSON'],
    [
      'text that is not YAML',
      `[{name: game, hash: ${hash}`,
      'RANKD_KEYS:1:85: invalid YAML: the indentation differs from the lines around it, or a bracket above is still open',
    ],
    ['the quotes of a shell', `'[{name: game, hash: ${hash}}]'`, 'RANKD_KEYS: is in quotes; remove them'],
    ['one key without a list', `{name: game, hash: ${hash}}`, 'RANKD_KEYS: is a mapping; expected a list of keys'],
    [
      'a secret for a hash',
      `[{name: game, hash: rk_live_${'a'.repeat(40)}}]`,
      'RANKD_KEYS keys[0].hash: is text; expected the 64',
    ],
    ['an alias without an anchor', '[*key]', 'RANKD_KEYS: is "[*key]"; expected a list of keys'],
    [
      'an unknown field',
      `[{name: game, hash: ${hash}, maxrank: 1}]`,
      'RANKD_KEYS keys[0].maxrank: unknown setting; did you mean max_rank?',
    ],
  ])('with %s is refused in one sentence that names it', (_, RANKD_KEYS, says) => {
    box.write('rankd.yaml', `keys: [{name: old, hash: ${other}}]`);
    const { message } = box.failure({ env: { RANKD_KEYS } });
    expect(message.split('\n')).toHaveLength(1);
    expect(message).toContain(says);
  });
});

test('a value in shell quotes is refused in a sentence that names the variable and repeats no value', () => {
  const env = { RANKD_STORE_URL: '"postgres://ann:geheim@db.example.com/rankd"', RANKD_GROUP_ID: "'12'" };
  expect(box.failure({ env }).message).toBe(
    'The configuration has 2 problems:\nRANKD_GROUP_ID: is in quotes; remove them\nRANKD_STORE_URL: is in quotes; remove them',
  );
});

test('an invalid workspace id is refused', () => {
  expect(box.failure({ env: { RANKD_WORKSPACE_ID: 'main' } }).message).toContain(
    'RANKD_WORKSPACE_ID: is "main"; expected ws_ and 1 to 60 letters, digits or underscores',
  );
});

describe('the URL of the store', () => {
  const url = 'postgres://ann:geheim@db.example.com/rankd';
  const storeOf = (parameters: string, env: Record<string, string> = {}) =>
    box.load({ env: { RANKD_STORE_URL: `${url}?${parameters}`, ...env } }).config.store;

  test.each([
    ['disable', false],
    ['prefer', 'unchecked'],
    ['require', 'unchecked'],
    ['verify-ca', {}],
    ['verify-full', {}],
  ])('with sslmode=%s determines the use of TLS', (mode, tls) => {
    expect(storeOf(`sslmode=${mode}`)?.tls).toEqual(tls);
    expect(storeOf(`sslmode=${mode}`)?.host).toBe('db.example.com');
  });

  test('can set a CA, an application name, a connection timeout, and pgbouncer, which has no effect', () => {
    const pem = new Authority().pem.trim();
    box.write('ca.pem', pem);
    const store = storeOf(
      'sslmode=verify-full&sslrootcert=ca.pem&application_name=blue&connect_timeout=9&pgbouncer=true',
    );
    expect(store).toMatchObject({ tls: { ca: pem }, applicationName: 'blue', connectTimeoutMs: 9_000 });
    expect(Object.keys(storeOf('pgbouncer=true') ?? {})).toEqual(Object.keys(storeOf('') ?? {}));
  });

  const wrong: Array<[parameters: string, env: Record<string, string>, says: string]> = [
    [
      'channel=1',
      {},
      'RANKD_STORE_URL: has the parameter channel, which rankd does not support; it supports host, sslmode, sslrootcert, application_name, connect_timeout, pgbouncer',
    ],
    [
      'sslmode=allow',
      {},
      'RANKD_STORE_URL: has an invalid parameter sslmode; expected one of disable, prefer, require, verify-ca, verify-full',
    ],
    ['toString=1', {}, 'RANKD_STORE_URL: has the parameter toString, which'],
    ['sslmode=toString', {}, 'RANKD_STORE_URL: has an invalid parameter sslmode; expected one of disable, prefer,'],
    ['sslmode=require&sslmode=disable', {}, 'RANKD_STORE_URL: has the parameter sslmode twice'],
    [
      'connect_timeout=0',
      {},
      'RANKD_STORE_URL: has an invalid parameter connect_timeout; expected a number of seconds from 1 to 99',
    ],
    ['pgbouncer=yes', {}, 'RANKD_STORE_URL: has an invalid parameter pgbouncer; expected true or false'],
    ['sslrootcert=none.pem', {}, 'none.pem does not exist'],
    [
      'sslmode=require',
      { RANKD_STORE_TLS: 'off' },
      'RANKD_STORE_TLS: is off, but sslmode=require in store.url means require; remove one of them',
    ],
    [
      'sslmode=require',
      { RANKD_STORE_CA_FILE: 'ca.pem' },
      'requests TLS (sslmode=require), which does not check the certificate, but a CA is set; use sslmode=verify-full instead',
    ],
    ['host=/tmp&sslmode=require', {}, 'requests TLS (sslmode=require), but a socket has no TLS; remove sslmode'],
  ];
  test.each(wrong)('%s %j is refused in one sentence that repeats no value', (parameters, env, says) => {
    box.write('ca.pem', new Authority().pem);
    const { message } = box.failure({ env: { RANKD_STORE_URL: `${url}?${parameters}`, ...env } });
    expect(message.split('\n')).toHaveLength(1);
    expect(message).toContain(says);
    expect(message).not.toContain('geheim');
  });

  test.each([
    [{ RANKD_STORE_TLS: 'require' }, 'store.tls'],
    [{ RANKD_STORE_NODE: 'east-1', RANKD_STORE_PASSWORD: 'geheim' }, 'store.node, RANKD_STORE_PASSWORD'],
  ])('is missing, so a warning names the settings that have no effect without it: %j', (env, names) => {
    expect(box.load({ env }).warnings).toEqual([`There is no store.url, so rankd uses SQLite and ignores ${names}.`]);
    expect(box.load({ env: { ...env, RANKD_STORE_URL: url, RANKD_STORE_PASSWORD: 'geheim' } }).warnings).toEqual([]);
  });

  test('with store.tls: require and no password is refused, because only a password authenticates the server', () => {
    const env = { RANKD_STORE_URL: 'postgres://ann@db.example.com/rankd', RANKD_STORE_TLS: 'require' };
    expect(box.failure({ env }).message).toContain('RANKD_STORE_TLS: is require, which needs a password');
    expect(box.load({ env: { ...env, RANKD_STORE_PASSWORD: 'geheim' } }).config.store?.tls).toBe('unchecked');
  });
});
