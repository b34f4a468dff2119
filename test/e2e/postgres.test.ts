import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { codeOf } from '../support/answers.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { postgresDatabase } from '../support/postgres-database.ts';
import { CliHome } from '../support/run-cli.ts';

function home(): CliHome {
  const made = new CliHome();
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

test('a daemon and the commands of another machine work on one database of PostgreSQL', async () => {
  const { url, address } = await postgresDatabase('empty');
  const env = { RANKD_STORE_URL: url };
  const [here, there] = [home(), home()];
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await there.here(args, { env });
    expect(stderr, args.join(' ')).not.toMatch(/error/i);
    expect(code).toBe(0);
    return stdout.trim();
  };

  const created = await there.run(['key', 'create', 'game'], { env });
  expect(created.stderr).toContain(`rankd kept nothing in ${address.database} on 127.0.0.1:${address.port} before`);
  const key = created.stdout.trim();
  await run('whitelist', 'add', '1', '--key', 'game');

  const first = await DaemonProcess.start(here, { env });
  expect(await first.verify(key)).toMatchObject({ status: 200 });
  expect(await first.rank(key)).toMatchObject({ status: 200 });
  await run('rank', 'set', '1002', 'Officer');
  const { changes } = JSON.parse(await run('history', 'list', '--json'));
  expect(changes).toMatchObject([
    { rankeeId: 1002, state: 'applied' },
    { state: 'applied', by: expect.stringMatching(/^key:/) },
  ]);
  expect(JSON.parse((await here.here(['status', '--json'], { env })).stdout)).toMatchObject({
    status: { state: 'running', storeProblem: null },
  });

  await run('workspace', 'suspend', '-y');
  expect(codeOf(await first.verify(key))).toBe('invalid_key');
  await run('workspace', 'resume');
  expect(await first.verify(key)).toMatchObject({ status: 200 });

  expect(await first.stop('SIGKILL')).toBeNull();
  await using second = await DaemonHere.start(here, { env });
  await run('key', 'revoke', 'game', '-y');
  expect(codeOf(await second.verify(key))).toBe('invalid_key');
  expect(await run('audit', 'verify')).toMatch(/^ok: \d+ events/);
  expect(await run('db', 'check')).toContain('on PostgreSQL');
  expect(await run('doctor', '--offline')).toContain('sound, schema');
  expect(readdirSync(here.dataDir)).not.toContain('rankd.db');
});

describe('what the operator gets wrong about the server is one sentence, and nothing is made', () => {
  const cases: Array<[what: string, env: (url: string) => Record<string, string>, code: number, says: RegExp]> = [
    [
      'nothing listens',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@127.0.0.1:1/rankd' }),
      69,
      /does not answer[\s\S]*127\.0\.0\.1:1 is right \(ECONNREFUSED\)/,
    ],
    [
      'no such host',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@db.invalid/rankd', RANKD_STORE_TLS: 'off' }),
      69,
      /does not answer[\s\S]*db\.invalid:5432/,
    ],
    [
      'no such database',
      (url) => ({ RANKD_STORE_URL: `${url}_gone` }),
      78,
      /has no database named \w+_gone[\s\S]*createdb/,
    ],
    [
      'no such user',
      (url) => ({ RANKD_STORE_URL: url.replace('postgres@', 'somebody@') }),
      77,
      /does not let somebody into/,
    ],
    [
      'a wrong password',
      (url) => ({ ...guarded(url), RANKD_STORE_PASSWORD: 'falsch' }),
      77,
      /refused the password of guarded/,
    ],
    [
      'TLS where the user may not come without',
      (url) => ({ ...guarded(url), RANKD_STORE_TLS: 'off', RANKD_STORE_CA_FILE: '' }),
      77,
      /does not let guarded into/,
    ],
    [
      'a certificate that nobody vouches for',
      (url) => ({ ...guarded(url), RANKD_STORE_CA_FILE: '', RANKD_STORE_TLS: 'verify' }),
      78,
      /certificate of localhost is not to be trusted[\s\S]*store\.ca_file/,
    ],
    [
      'a certificate for another name',
      (url) => ({ ...guarded(url), RANKD_STORE_URL: guarded(url).RANKD_STORE_URL.replace('localhost', '127.0.0.1') }),
      78,
      /certificate of 127\.0\.0\.1 is not to be trusted/,
    ],
    [
      'a file with the password that is not there',
      (url) => ({ RANKD_STORE_URL: url, RANKD_STORE_PASSWORD_FILE: 'gone' }),
      78,
      /RANKD_STORE_PASSWORD_FILE: .*gone does not exist/,
    ],
    [
      'another engine',
      () => ({ RANKD_STORE_URL: 'mysql://rankd@db/rankd' }),
      78,
      /RANKD_STORE_URL: is no URL of a store/,
    ],
    ['a parameter', (url) => ({ RANKD_STORE_URL: `${url}?sslmode=require` }), 78, /has the parameter sslmode/],
    [
      'several servers',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@/rankd?host=one,two' }),
      78,
      /names several servers/,
    ],
  ];

  test.each(cases)('%s', async (_what, env, code, says) => {
    const { url, authority } = await postgresDatabase();
    const at = home();
    writeFileSync(at.path('ca.pem'), authority);
    for (const args of [
      ['key', 'list'],
      ['serve', '--port', '0'],
    ]) {
      const result = await at.here(args, { env: env(url) });
      expect({ code: result.code, stderr: result.stderr }).toEqual({ code, stderr: expect.stringMatching(says) });
      expect(result.stderr.match(/^error:/gm)).toHaveLength(1);
      expect(result.stderr).not.toContain('geheim');
    }
  });

  test('with the right password and authority, it gets in over TLS; the password can stand in a file', async () => {
    const { url, authority } = await postgresDatabase();
    const at = home();
    writeFileSync(at.path('ca.pem'), authority);
    const env = guarded(url);
    expect(await at.here(['key', 'list'], { env })).toMatchObject({ code: 0 });
    writeFileSync(at.path('password'), 'geheim\n', { mode: 0o600 });
    const { RANKD_STORE_URL, RANKD_STORE_CA_FILE } = env;
    const file = `store: {url: '${RANKD_STORE_URL}', password_file: password, ca_file: ${RANKD_STORE_CA_FILE}}`;
    writeFileSync(at.path('rankd.yaml'), file, { mode: 0o600 });
    expect(await at.here(['key', 'list'])).toMatchObject({ code: 0 });
    expect(await at.here(['config', 'check', '--offline'])).toMatchObject({ code: 0 });
    chmodSync(at.path('password'), 0o644);
    expect((await at.here(['config', 'check', '--offline'])).stderr).toContain('can be read by other users');
  });

  test('a password in the file is refused where it stands, and shown nowhere', async () => {
    const at = home();
    writeFileSync(at.path('rankd.yaml'), 'store:\n  url: postgres://rankd:geheim@db/rankd\n', { mode: 0o600 });
    for (const args of [['key', 'list'], ['serve'], ['config', 'check'], ['config', 'show'], ['doctor', '--offline']]) {
      const { stdout, stderr } = await at.here(args);
      expect(stdout + stderr).toContain('holds a password');
      expect(stdout + stderr).toContain('store.password_file');
      expect(stdout + stderr).not.toContain('geheim');
    }
    const shown = await at.here(['config', 'show'], {
      env: { RANKD_CONFIG: '/dev/null', RANKD_STORE_URL: 'postgres://rankd:geheim@127.0.0.1/rankd' },
    });
    expect(shown.stdout).toContain('postgres://rankd:[redacted]@127.0.0.1/rankd');
    expect(shown.stdout + shown.stderr).not.toContain('geheim');
  });

  test('a standby is left at once, and so is a schema that is not this rankd’s', async () => {
    const { url, address } = await postgresDatabase('empty');
    const env = { RANKD_STORE_URL: url };
    const sql = async (text: string) => {
      const client = new pg.Client({ connectionString: url, options: '-c default_transaction_read_only=off' });
      await client.connect();
      await client.query(text);
      await client.end();
    };
    const at = home();
    const outcome = async () => {
      const { code, stderr } = await at.here(['key', 'create', 'x'], { env });
      return { code, stderr };
    };
    await sql(`ALTER DATABASE ${address.database} SET default_transaction_read_only = on`);
    expect(await outcome()).toEqual({ code: 69, stderr: expect.stringMatching(/is read-only: it is a standby/) });
    await sql(`ALTER DATABASE ${address.database} RESET ALL; CREATE SCHEMA rankd`);
    expect(await outcome()).toEqual({ code: 78, stderr: expect.stringMatching(/schema rankd in .* is not rankd's/) });
    await sql('DROP SCHEMA rankd');
    expect(await outcome()).toMatchObject({ code: 0 });
    await sql(`INSERT INTO rankd.schema_steps VALUES (99, 98, '9.9.9', 0)`);
    expect(await outcome()).toEqual({
      code: 78,
      stderr: expect.stringMatching(/has schema 99, written by rankd 9\.9\.9[\s\S]*run rankd 9\.9\.9 or a later one/),
    });
    await sql(`UPDATE rankd.schema_steps SET lives_with = 1 WHERE version = 99`);
    expect(await at.here(['key', 'list'], { env })).toMatchObject({ code: 0 });
  });
});

/** The user with a password, over TLS. */
function guarded(url: string) {
  const { port, pathname } = new URL(url);
  return {
    RANKD_STORE_URL: `postgres://guarded@localhost:${port}${pathname}`,
    RANKD_STORE_PASSWORD: 'geheim',
    RANKD_STORE_CA_FILE: 'ca.pem',
  };
}

test('no command on SQLite loads a line of the client of PostgreSQL', async () => {
  const at = home();
  const { url } = await postgresDatabase();
  const note = `import { registerHooks } from 'node:module'; import { appendFileSync } from 'node:fs';
    registerHooks({ load(url, context, next) { appendFileSync(process.env.LOADED, url + '\\n'); return next(url, context); } });`;
  writeFileSync(at.path('note.mjs'), note);
  const hasClient = async (args: string[], env: Record<string, string> = {}) => {
    const list = at.path(args.join('-'));
    const result = await at.run(args, {
      env: { ...env, NODE_OPTIONS: `--import=${at.path('note.mjs')}`, LOADED: list },
    });
    expect(result).toMatchObject({ code: 0 });
    const loaded = readFileSync(list, 'utf8')
      .split('\n')
      .filter((file) => file.includes('/dist/'));
    expect(loaded.length).toBeGreaterThan(2);
    return loaded.some((file) => readFileSync(new URL(file), 'utf8').includes('SCRAM-SHA-256'));
  };
  expect(await hasClient(['key', 'create', 'game'])).toBe(false);
  expect(await hasClient(['rank', 'set', '1001', 'Officer'])).toBe(false);
  writeFileSync(at.path('rankd.yaml'), 'server:\n  port: 7265\n', { mode: 0o600 });
  expect(await hasClient(['key', 'list'])).toBe(false);
  expect(await hasClient(['workspace', 'show'], { RANKD_STORE_URL: url })).toBe(true);
});
