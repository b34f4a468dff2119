import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { codeOf } from '../support/answers.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { type FakeServer, startFakePostgres } from '../support/fake-postgres.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { onServer, postgresDatabase } from '../support/postgres-database.ts';
import { CliHome } from '../support/run-cli.ts';
import { runUnprivileged } from '../support/run-unprivileged.ts';
import { startStoreProxy } from '../tools/store-proxy.ts';

function newHome(): CliHome {
  const made = new CliHome();
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

test('a daemon and the commands on a different machine share one PostgreSQL database', async () => {
  const { url, address } = await postgresDatabase('empty');
  const env = { RANKD_STORE_URL: url };
  const [here, there] = [newHome(), newHome()];
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await there.here(args, { env });
    expect(stderr, args.join(' ')).not.toMatch(/error/i);
    expect(code).toBe(0);
    return stdout.trim();
  };

  const created = await there.here(['key', 'create', 'game'], { env });
  expect(created.stderr).toContain(`${address.database} on 127.0.0.1:${address.port} had no rankd data`);
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
  // to save time, the tests' server runs without fsync and full_page_writes
  const { code, stdout } = await there.here(['doctor', '--offline'], { env });
  expect({ code, stdout }).toEqual({ code: 5, stdout: expect.stringMatching(/^ok +database +sound, schema/m) });
  expect(stdout).toMatch(/^FAIL +server +fsync is off/m);
  expect(stdout).toMatch(/^FAIL +server +full_page_writes is off/m);
  expect(readdirSync(here.dataDir)).not.toContain('rankd.db');
});

test('db check prints the command to restore a dump', async () => {
  const { url, address, authority } = await postgresDatabase();
  const home = newHome();
  writeFileSync(home.path('ca.pem'), authority);
  const env = guarded(url);
  const db = (...args: string[]) => home.here(['db', ...args], { env });
  const place = `postgres://guarded@localhost:${address.port}/${address.database}`;
  const nothing = 'The database already has the newest schema; there is nothing to do.\n';
  for (const args of [['--dry-run'], []])
    expect(await db('migrate', ...args)).toMatchObject({ code: 0, stderr: nothing });

  await onServer(address, 'DROP INDEX rankd.changes_asked_by');
  const restoreHint = `if you have a dump, stop all daemons, rename the schema (ALTER SCHEMA rankd RENAME TO rankd_broken), then restore the dump: pg_restore --exit-on-error --single-transaction --dbname=${place} rankd.dump`;
  expect(await db('check')).toMatchObject({ code: 5, stderr: `try: ${restoreHint}\n` });
  const { findings } = (await home.here(['doctor', '--offline', '--json'], { env })).json<{ findings: object[] }>();
  expect(findings).toContainEqual(expect.objectContaining({ check: 'database', grade: 'FAIL', fix: restoreHint }));
});

test('a command that only reads opens one connection to the server', async () => {
  const { address } = await postgresDatabase();
  await using proxy = await startStoreProxy(address.port);
  const RANKD_STORE_URL = `postgres://${address.user}@127.0.0.1:${proxy.port}/${address.database}`;
  expect(await newHome().here(['key', 'list'], { env: { RANKD_STORE_URL } })).toMatchObject({ code: 0 });
  expect(proxy.made).toBe(1);
});

test('completion uses names from a server, but a silent server delays a shell only briefly', async () => {
  const { url, address } = await postgresDatabase();
  await using proxy = await startStoreProxy(address.port);
  const home = newHome();
  const silent = `postgres://${address.user}@127.0.0.1:${proxy.port}/${address.database}`;
  const line = ['__complete', 'key', 'show', ':lob'];
  const named = { code: 0, stdout: 'lobby\tlive key\n', stderr: '' };
  expect(await home.here(['key', 'create', 'lobby'], { env: { RANKD_STORE_URL: url } })).toMatchObject({ code: 0 });
  // the first attempt may time out on a busy machine
  await expect.poll(() => home.here(line, { env: { RANKD_STORE_URL: url } })).toMatchObject(named);
  writeFileSync(home.path('other.yaml'), `store: {url: '${silent}'}\n`, { mode: 0o600 });
  const withFile = [...line.slice(0, 1), '--config', 'other.yaml', ...line.slice(1)];
  await expect.poll(() => home.here(withFile)).toMatchObject(named);
  expect(await home.here(['__complete', '-c', 'gone.yaml', ...line.slice(1)])).toMatchObject({ code: 0, stdout: '' });

  proxy.mode = 'hold';
  const before = proxy.made;
  const answered = home.run(withFile);
  await expect.poll(() => proxy.made, { interval: 5 }).toBeGreaterThan(before);
  const since = performance.now();
  expect(await answered).toMatchObject({ code: 0, stdout: '', stderr: '' });
  expect(performance.now() - since).toBeLessThan(2_000); // connecting would time out only after three seconds
});

test('a machine without the real group’s configuration gets a notice, and so does a daemon without keys', async () => {
  const { url } = await postgresDatabase();
  await using world = await openCloudHome();
  const env = { RANKD_STORE_URL: url };
  await using daemon = await world.serve(env);
  for (const args of [
    ['rank', 'show', '1001'],
    ['rank', 'set', '1001', '20'],
    ['group', 'show'],
  ]) {
    const { code, stderr } = await newHome().here(args, { env });
    expect(code).toBe(78);
    expect(stderr).toContain(`This database serves group ${world.roblox.groupId} on `);
    expect(stderr).toContain(`(its configuration is ${world.home.path('rankd.yaml')} on the machine of a daemon)`);
    expect(stderr).toContain('try: copy that file to this machine, and name it with --config; ');
  }
  const second = world.home.start(['serve', '--port', '0'], { env, dataDir: world.home.path('second') });
  onTestFinished(() => void second.kill());
  let stderr = '';
  second.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  await expect.poll(() => stderr).toContain('No game key is accepted yet');
  expect(stderr).toContain('stop all daemons, then `rankd store copy --from WHERE --to URL`.');
  expect(stderr).not.toContain('restore');
  expect(daemon.log).not.toContain('error');
});

test('doctor reports missing permissions; doctor, reload and commands that only read create nothing in an empty database', async () => {
  const { url, address } = await postgresDatabase('empty');
  const plain = `plain_${address.database}`; // can log in, but has no other permission
  await onServer(address, `CREATE ROLE ${plain} LOGIN`);
  onTestFinished(async () => {
    await onServer(address, `DROP OWNED BY ${plain}; DROP ROLE ${plain}`);
  });
  const home = newHome();
  const as = (user: string) => ({ env: { RANKD_STORE_URL: url.replace('postgres@', `${user}@`) } });
  const lack = async (user: string) => {
    const { code, json } = await home.here(['doctor', '--offline', '--json'], as(user));
    expect(code).toBe(5);
    const { findings } = json<{ findings: Array<{ check: string; grade: string; text: string; fix?: string }> }>();
    return findings
      .filter(({ grade, text }) => grade === 'FAIL' && text.includes(user))
      .map(({ text, fix }) => [text, fix]);
  };
  expect(await lack('postgres')).toEqual([]);
  for (const args of [['reload'], ['status'], ['backup', 'x.db'], ['db', 'migrate'], ['db', 'check']])
    expect((await home.here(args, as('postgres'))).code, args.join(' ')).toBeGreaterThan(0);
  expect(await onServer(address, `SELECT to_regnamespace('rankd') AS made`)).toEqual([{ made: null }]);
  const create = `GRANT CREATE ON DATABASE "${address.database}" TO "${plain}"`;
  expect(await lack(plain)).toEqual([[`the user ${plain} cannot create a schema in the database`, create]]);
  expect(await home.here(['key', 'create', 'x'], as(plain))).toMatchObject({
    code: 77,
    stderr: expect.stringContaining(
      `permission denied for database ${address.database}.\ntry: allow it to create rankd's schema: ${create}\n`,
    ),
  });

  expect(await home.here(['key', 'create', 'x'], as('postgres'))).toMatchObject({ code: 0 });
  const owner = `or make ${plain} a member of that role`;
  expect(await home.here(['key', 'list'], as(plain))).toMatchObject({
    code: 77,
    stderr: expect.stringMatching(new RegExp(`permission denied for schema rankd\\.\ntry: .*${owner}\n`)),
  });
  const rights = ['USAGE ON SCHEMA rankd', 'ALL ON ALL TABLES IN SCHEMA rankd', 'ALL ON ALL SEQUENCES IN SCHEMA rankd'];
  await onServer(address, rights.map((right) => `GRANT ${right} TO ${plain}`).join(';'));
  expect(await lack(plain)).toEqual([
    [expect.stringContaining('does not own the rankd schema'), expect.stringContaining(owner)],
  ]);
  await onServer(address, `GRANT postgres TO ${plain}`);
  expect(await lack(plain)).toEqual([]);
});

describe('the settings of the PostgreSQL server:', () => {
  const cases: Array<[what: string, env: (url: string) => Record<string, string>, code: number, says: RegExp]> = [
    [
      'nothing listens',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@127.0.0.1:1/rankd' }),
      69,
      /it refuses connections \(ECONNREFUSED\)[\s\S]*127\.0\.0\.1:1/,
    ],
    [
      'no such host',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@db.invalid/rankd', RANKD_STORE_TLS: 'off' }),
      69,
      /its host name (does not exist|could not be resolved)[\s\S]*try: /,
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
      /does not accept somebody on/,
    ],
    [
      'a wrong password',
      (url) => ({ ...guarded(url), RANKD_STORE_PASSWORD: 'falsch' }),
      77,
      /refused the password of guarded/,
    ],
    [
      'no password if one is required',
      (url) => ({ ...guarded(url), RANKD_STORE_PASSWORD: '' }),
      77,
      /requires a password from guarded[\s\S]*RANKD_STORE_PASSWORD[\s\S]*store\.password_file/,
    ],
    [
      'an empty file with the password',
      (url) => ({ ...guarded(url), RANKD_STORE_PASSWORD: '', RANKD_STORE_PASSWORD_FILE: 'empty' }),
      78,
      /RANKD_STORE_PASSWORD_FILE: .*empty is empty; put the password into it/,
    ],
    [
      'no TLS if the user needs it',
      (url) => ({ ...guarded(url), RANKD_STORE_TLS: 'off', RANKD_STORE_CA_FILE: '' }),
      77,
      /does not accept guarded on/,
    ],
    [
      'a certificate from an unknown CA',
      (url) => ({ ...guarded(url), RANKD_STORE_CA_FILE: '', RANKD_STORE_TLS: 'verify' }),
      78,
      /its certificate is not trusted[\s\S]*store\.ca_file/,
    ],
    [
      'a certificate for a different name',
      (url) => ({ ...guarded(url), RANKD_STORE_URL: guarded(url).RANKD_STORE_URL.replace('localhost', '127.0.0.1') }),
      78,
      /its certificate is for a different name[\s\S]*host name that the certificate names/,
    ],
    [
      'a missing file with the password',
      (url) => ({ RANKD_STORE_URL: url, RANKD_STORE_PASSWORD_FILE: 'gone' }),
      78,
      /RANKD_STORE_PASSWORD_FILE: .*gone does not exist/,
    ],
    [
      'a CA file that is not a certificate',
      (url) => ({ ...guarded(url), RANKD_STORE_CA_FILE: 'broken.pem' }),
      78,
      /RANKD_STORE_CA_FILE: .*broken\.pem does not contain a PEM certificate/,
    ],
    [
      'an unknown TLS mode',
      (url) => ({ ...guarded(url), RANKD_STORE_TLS: 'encrypt' }),
      78,
      /RANKD_STORE_TLS: .*expected one of verify, require, off/,
    ],
    [
      'TLS on a socket',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@/rankd?host=/tmp', RANKD_STORE_TLS: 'verify' }),
      78,
      /RANKD_STORE_TLS: .*a socket has no TLS/,
    ],
    [
      'a missing socket',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@:5433/rankd?host=/nowhere' }),
      69,
      /refuses connections \(ENOENT\)[\s\S]*\/nowhere\/\.s\.PGSQL\.5433/,
    ],
    [
      'an IPv6 address without a listener',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@[::1]:1/rankd' }),
      69,
      /refuses connections[\s\S]*\[::1\]:1/,
    ],
    ['no port', () => ({ RANKD_STORE_URL: 'postgres://rankd@db:0/rankd' }), 78, /RANKD_STORE_URL: has the port 0/],
    [
      'a character that must be escaped',
      () => ({ RANKD_STORE_URL: 'postgres://rankd:geheim/@db/rankd' }),
      78,
      /RANKD_STORE_URL: is not a store URL.*%2F for a \//,
    ],
    [
      'a parameter that is part of the password',
      () => ({ RANKD_STORE_URL: 'postgres://rankd:@db/rankd?geheim&x@db/rankd' }),
      78,
      /has the parameter …/,
    ],
    [
      'several servers, each with its port',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@one:5432,two:5432/rankd' }),
      78,
      /names several servers/,
    ],
    [
      'a comma in the password',
      () => ({ RANKD_STORE_URL: 'postgres://rankd:a,b@127.0.0.1:1/rankd' }),
      69,
      /can't be reached/,
    ],
    [
      'two sockets',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@/rankd?host=/one&host=/two' }),
      78,
      /names several servers/,
    ],
    [
      'another engine',
      () => ({ RANKD_STORE_URL: 'mysql://rankd@db/rankd' }),
      78,
      /RANKD_STORE_URL: is not a store URL/,
    ],
    [
      'the quotes of a shell',
      (url) => ({ RANKD_STORE_URL: `'${url}'` }),
      78,
      /RANKD_STORE_URL: is in quotes; remove them/,
    ],
    ['a parameter', (url) => ({ RANKD_STORE_URL: `${url}?sslmod=require` }), 78, /has the parameter sslmod,/],
    [
      'several servers',
      () => ({ RANKD_STORE_URL: 'postgres://rankd@/rankd?host=one,two' }),
      78,
      /names several servers/,
    ],
  ];

  test.each(cases)(
    'a wrong one is reported in one sentence, and nothing is created: %s',
    async (_what, env, code, says) => {
      const { url, authority } = await postgresDatabase();
      const home = newHome();
      writeFileSync(home.path('ca.pem'), authority);
      writeFileSync(home.path('broken.pem'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
      writeFileSync(home.path('empty'), '\n', { mode: 0o600 });
      for (const args of [
        ['key', 'list'],
        ['serve', '--port', '0'],
      ]) {
        const result = await home.here(args, { env: env(url) });
        expect({ code: result.code, stderr: result.stderr }).toEqual({ code, stderr: expect.stringMatching(says) });
        expect(result.stderr.match(/^error:/gm)).toHaveLength(1);
        expect(result.stderr).not.toContain('geheim');
      }
    },
  );

  test('with the right password and certificate authority, rankd connects over TLS; the password can be in a file', async () => {
    const { url, authority } = await postgresDatabase();
    const home = newHome();
    writeFileSync(home.path('ca.pem'), authority);
    const env = guarded(url);
    expect(await home.here(['key', 'list'], { env })).toMatchObject({ code: 0 });
    writeFileSync(home.path('password'), 'geheim\n', { mode: 0o600 });
    const { RANKD_STORE_URL, RANKD_STORE_CA_FILE } = env;
    const file = `store: {url: '${RANKD_STORE_URL}', password_file: password, ca_file: ${RANKD_STORE_CA_FILE}}`;
    writeFileSync(home.path('rankd.yaml'), file, { mode: 0o600 });
    expect(await home.here(['key', 'list'])).toMatchObject({ code: 0 });
    expect(await home.here(['config', 'check', '--offline'])).toMatchObject({ code: 0 });
    chmodSync(home.path('password'), 0o644);
    expect((await home.here(['config', 'check', '--offline'])).stderr).toContain('can be read by other users');
  });

  test('systemd’s credential takes precedence over the password file, and an empty one is reported', async () => {
    const { url, authority } = await postgresDatabase();
    const home = newHome();
    writeFileSync(home.path('ca.pem'), authority);
    writeFileSync(home.path('wrong'), 'falsch', { mode: 0o600 });
    writeFileSync(home.path('store_password'), 'geheim\n', { mode: 0o400 });
    const env = {
      ...{ ...guarded(url), RANKD_STORE_PASSWORD: '', RANKD_STORE_PASSWORD_FILE: 'wrong' },
      CREDENTIALS_DIRECTORY: home.path('.'),
    };
    expect(await home.here(['key', 'list'], { env })).toMatchObject({ code: 0 });
    chmodSync(home.path('store_password'), 0o600);
    writeFileSync(home.path('store_password'), '');
    expect(await home.here(['key', 'list'], { env })).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(/store_password is empty; put the password into it/),
    });
  });

  test('a server with a different protocol is reported as such, even over TLS', async () => {
    const server = createServer((socket) =>
      socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const RANKD_STORE_URL = `postgres://rankd@127.0.0.1:${(server.address() as { port: number }).port}/rankd`;
    for (const RANKD_STORE_TLS of ['off', 'verify']) {
      const result = await newHome().here(['key', 'list'], { env: { RANKD_STORE_URL, RANKD_STORE_TLS } });
      expect(result).toMatchObject({ code: 69, stderr: expect.stringMatching(/can't be reached/) });
    }
  });

  test('RANKD_STORE_URL takes precedence over the file; names can have any character, and a socket any port', async () => {
    const { address } = await postgresDatabase();
    const { host, port, user } = address;
    const name = `${address.database}/d%ü @`;
    await onServer(address, `CREATE DATABASE "${name}"`);
    onTestFinished(async () => void (await onServer(address, `DROP DATABASE "${name}" WITH (FORCE)`)));
    const home = newHome();
    writeFileSync(home.path('rankd.yaml'), 'store: {url: "postgres://rankd@db.invalid/rankd"}', { mode: 0o600 });
    const path = `/${encodeURIComponent(name)}`;
    const urls = [`postgresql://${user}@${encodeURIComponent(host)}:${port}${path}`];
    if (host.startsWith('/')) urls.push(`postgres://${user}@:${port}${path}?host=${host}`);
    for (const RANKD_STORE_URL of urls) {
      const shown = await home.here(['workspace', 'show'], { env: { RANKD_STORE_URL } });
      expect(shown).toMatchObject({ code: 0, stderr: expect.not.stringContaining('error') });
    }
    expect((await home.here(['key', 'list'])).stderr).toContain('db.invalid');
  });

  test.each([
    ['store: postgres://rankd@db/rankd', /store: expected a mapping of settings/],
    ['store: {ur: postgres://rankd@db/rankd}', /store\.ur: unknown setting/],
    ['store: {url: ""}', /store\.url: is not a store URL/],
    ['store: {url: postgres://rankd@db/rankd, tls: requir}', /store\.tls: expected one of verify, require, off/],
    ['store: {url: postgres://rankd@db/rankd, tls: false}', /store\.tls: expected text/],
    ['  store:\n    url: mysql://db', /store\.url: is not a store URL/],
    ['store:\n  url: postgres://rankd@db/rankd\n x: [', /store: the file is invalid YAML.*config check/],
    ['store: invalid', /store: expected a mapping of settings/],
  ])('no command falls back to SQLite, or to a connection without TLS, if the file has %j', async (text, says) => {
    const home = newHome();
    writeFileSync(home.path('rankd.yaml'), text, { mode: 0o600 });
    const { code, stderr } = await home.here(['key', 'create', 'game']);
    expect({ code, stderr }).toEqual({ code: 78, stderr: expect.stringMatching(says) });
    expect(existsSync(home.dataDir)).toBe(false);
    const checked = await home.here(['config', 'check', '--offline']);
    expect(checked.code).toBe(78);
  });

  test('no command falls back to SQLite if the file cannot be read', async () => {
    const home = newHome();
    writeFileSync(home.path('rankd.yaml'), 'store: {url: postgres://rankd@db/rankd}', { mode: 0o000 });
    const line = ['key', 'create', 'game', '--config', home.path('rankd.yaml')];
    const result = await runUnprivileged(line, home.dataDir);
    expect(result).toMatchObject({
      code: 77,
      stderr: expect.stringMatching(
        /This user is not allowed to read .*rankd\.yaml, so rankd cannot determine which store to open/,
      ),
    });
    expect(existsSync(home.dataDir)).toBe(false);
    const elsewhere = { RANKD_STORE_URL: 'postgres://rankd@127.0.0.1:1/rankd' };
    // The command does not need the file if RANKD_STORE_URL is set.
    expect(await runUnprivileged(line, home.dataDir, elsewhere)).toMatchObject({ code: 69 });
  });

  test('a password in the file is refused with its location, and never shown', async () => {
    const home = newHome();
    writeFileSync(home.path('rankd.yaml'), 'store:\n  url: postgres://rankd:geheim@db/rankd\n', { mode: 0o600 });
    for (const args of [['key', 'list'], ['serve'], ['config', 'check'], ['config', 'show'], ['doctor', '--offline']]) {
      const { stdout, stderr } = await home.here(args);
      expect(stdout + stderr).toContain('contains a password');
      expect(stdout + stderr).toContain('store.password_file');
      expect(stdout + stderr).not.toContain('geheim');
    }
    const shown = await home.here(['config', 'show'], {
      env: { RANKD_CONFIG: '/dev/null', RANKD_STORE_URL: 'postgres://rankd:geheim@127.0.0.1/rankd' },
    });
    expect(shown.stdout).toContain('postgres://rankd:[redacted]@127.0.0.1/rankd');
    expect(shown.stdout + shown.stderr).not.toContain('geheim');
  });

  test('rankd disconnects at once from a standby, and from a schema with different contents', async () => {
    const { url, address } = await postgresDatabase('empty');
    const env = { RANKD_STORE_URL: url };
    const sql = async (text: string) => {
      const client = new pg.Client({ connectionString: url, options: '-c default_transaction_read_only=off' });
      await client.connect();
      await client.query(text);
      await client.end();
    };
    const home = newHome();
    const outcome = async () => {
      const { code, stderr } = await home.here(['key', 'create', 'x'], { env });
      return { code, stderr };
    };
    await sql(`ALTER DATABASE ${address.database} SET default_transaction_read_only = on`);
    expect(await outcome()).toEqual({
      code: 69,
      stderr: expect.stringMatching(
        /is read-only: default_transaction_read_only is on[\s\S]*ALTER DATABASE \S+ RESET default_tr/,
      ),
    });
    await sql(`ALTER DATABASE ${address.database} RESET ALL; CREATE SCHEMA rankd`);
    expect(await outcome()).toEqual({
      code: 78,
      stderr: expect.stringMatching(/schema rankd in .* was not created by rankd/),
    });
    await sql('DROP SCHEMA rankd');
    expect(await outcome()).toMatchObject({ code: 0 });
    await sql(`INSERT INTO rankd.schema_steps VALUES (99, 98, '9.9.9', 0)`);
    expect(await outcome()).toEqual({
      code: 78,
      stderr: expect.stringMatching(/has schema 99, written by rankd 9\.9\.9[\s\S]*run rankd 9\.9\.9 or a later one/),
    });
    await sql(`UPDATE rankd.schema_steps SET lives_with = 1 WHERE version = 99`);
    expect(await home.here(['key', 'list'], { env })).toMatchObject({ code: 0 });
  });
});

describe('an unsupported server is reported in one sentence:', () => {
  test.each<[what: string, server: FakeServer, code: number, says: RegExp]>([
    ['one that is too old', { version: 140_011 }, 78, /on 127\.0\.0\.1:\d+ is version 14\.11; rankd needs 15 or newer/],
    [
      'a pooler that loses statements',
      { version: 180_004, errorCode: '26000' },
      78,
      /A pooler between rankd and PostgreSQL[\s\S]*PgBouncer 1\.21/,
    ],
    [
      'no connection left',
      { version: 180_004, errorCode: '53300' },
      69,
      /no connection left for rankd[\s\S]*each daemon needs 5/,
    ],
    [
      'a pooler that allows no transactions',
      {
        version: 180_004,
        errorCode: '08P01',
        errorMessage: 'transaction blocks not allowed in statement pooling mode',
      },
      78,
      /pooler between rankd and PostgreSQL allows no transactions[\s\S]*pool_mode = transaction/,
    ],
    [
      'a pooler with a different password',
      { version: 180_004, errorCode: '08P01', errorMessage: 'password authentication failed' },
      77,
      /PostgreSQL refused the password of rankd[\s\S]*RANKD_STORE_PASSWORD/,
    ],
    [
      'a pooler that has no such database',
      { version: 180_004, errorCode: '08P01', errorMessage: 'no such database: rankd' },
      78,
      /has no database named rankd/,
    ],
    [
      'a pooler with no connection left',
      { version: 180_004, errorCode: '08P01', errorMessage: 'no more connections allowed (max_client_conn)' },
      69,
      /no connection left for rankd/,
    ],
    [
      'a pooler that does not reach the server',
      {
        version: 180_004,
        errorCode: '08P01',
        errorMessage: 'server login has been failing, cached error: connect failed',
      },
      69,
      /can't be reached[\s\S]*127\.0\.0\.1:\d+/,
    ],
    ['a full disk', { version: 180_004, errorCode: '53100' }, 69, /PostgreSQL server's disk is full/],
  ])('%s', async (_what, fake, code, says) => {
    const { port } = await startFakePostgres(fake);
    const home = newHome();
    for (const args of [
      ['key', 'list'],
      ['serve', '--port', '0'],
    ]) {
      const result = await home.here(args, { env: { RANKD_STORE_URL: `postgres://rankd@127.0.0.1:${port}/rankd` } });
      expect({ code: result.code, stderr: result.stderr }).toEqual({ code, stderr: expect.stringMatching(says) });
      expect(result.stderr.match(/^error:/gm)).toHaveLength(1);
    }
  });
});

/** Returns the variables for connecting over TLS as the user `guarded`, who has a password. */
function guarded(url: string) {
  const { port, pathname } = new URL(url);
  return {
    RANKD_STORE_URL: `postgres://guarded@localhost:${port}${pathname}`,
    RANKD_STORE_PASSWORD: 'geheim',
    RANKD_STORE_CA_FILE: 'ca.pem',
  };
}

test('no command on SQLite loads the PostgreSQL client', async () => {
  const home = newHome();
  const { url } = await postgresDatabase();
  const note = `import { registerHooks } from 'node:module'; import { appendFileSync } from 'node:fs';
    registerHooks({ load(url, context, next) { appendFileSync(process.env.LOADED, url + '\\n'); return next(url, context); } });`;
  writeFileSync(home.path('note.mjs'), note);
  const hasClient = async (args: string[], env: Record<string, string> = {}) => {
    const list = home.path(args.join('-'));
    const result = await home.run(args, {
      env: { ...env, NODE_OPTIONS: `--import=${home.path('note.mjs')}`, LOADED: list },
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
  writeFileSync(home.path('rankd.yaml'), 'server:\n  port: 7265\n', { mode: 0o600 });
  expect(await hasClient(['key', 'list'])).toBe(false);
  expect(await hasClient(['workspace', 'show'], { RANKD_STORE_URL: url })).toBe(true);
});
