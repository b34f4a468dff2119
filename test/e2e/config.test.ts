import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CliHome } from '../support/run-cli.ts';

test('config show has the origin of each value (flag, variable, line of the file, default) and the overridden values', async () => {
  using home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), 'server:\n  port: 8080\n  host: 127.0.0.2\n');
  const env = { RANKD_SERVER_HOST: '127.0.0.3' };
  const { stdout } = await home.here(['config', 'show', '--origin'], { env });
  expect(stdout).toMatch(/^server\.port +8080 +file rankd\.yaml:2:9 +-$/m);
  expect(stdout).toMatch(
    /^server\.host +127\.0\.0\.3 +environment RANKD_SERVER_HOST +file rankd\.yaml:3:9 \(127\.0\.0\.2\)$/m,
  );
  expect(stdout).toMatch(/^server\.deadline +20s +default +-$/m);
});

test('config get prints only the value, hides a secret, and suggests a name for a typo', async () => {
  using home = new CliHome();
  const env = { RANKD_GROUP_ID: '7', RANKD_PLATFORM_API_KEY: 'very-secret-platform-key' };
  const get = async (...args: string[]) => home.here(['config', 'get', ...args], { env });
  expect(await get('server.port')).toMatchObject({ code: 0, stdout: '7265\n', stderr: '' });
  expect(await get('policy.locked_roles')).toMatchObject({ code: 0, stdout: '[]\n' });
  expect((await get('group.id', '--json')).json()).toMatchObject({ setting: { name: 'group.id', value: 7 } });
  expect((await get('platform.api_key')).stdout).not.toContain('very-secret');
  const slip = await get('server.prot');
  expect(slip).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('try: rankd config get server.port'),
  });
});

test('config show never shows the Roblox key', async () => {
  using home = new CliHome();
  const env = { RANKD_GROUP_ID: '7', RANKD_PLATFORM_API_KEY: 'very-secret-platform-key' };
  for (const args of [
    ['config', 'show', '--origin'],
    ['config', 'show', '--json'],
    ['config', 'check', '-v'],
  ]) {
    const { code, stdout, stderr } = await home.here(args, { env });
    expect(code).toBe(0);
    expect(stdout + stderr).not.toContain('very-secret');
  }
});

test('config check reports all problems with their locations, and exits with 78', async () => {
  using home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), 'server:\n  prot: 80\npolicy:\n  max_rank: 300\n');
  const { code, stderr } = await home.here(['config', 'check']);
  expect(code).toBe(78);
  expect(stderr).toMatch(/rankd\.yaml:2:3 .*did you mean server\.port/);
  expect(stderr).toMatch(/rankd\.yaml:4:13 .*1 to 254/);
});

test('config check shows each line with a caret, but without any part that could be a secret', async () => {
  using home = new CliHome();
  const yaml = [
    'server:',
    '  prot: hush1',
    'platform: {api_key: hush2, kind: real}',
    'policy:',
    '  locked_roles: [10, "hush3@x"]',
  ];
  writeFileSync(home.path('rankd.yaml'), `${yaml.join('\n')}\n`);
  const { stderr } = await home.here(['config', 'check']);
  expect(stderr).toContain('\n    2 |   prot\n      |   ^^^^\n');
  expect(stderr).toContain('\n    3 | … real\n      |   ^^^^\n');
  writeFileSync(home.path('rankd.yaml'), 'hush4: hush5: hush6\n');
  const flawed = await home.here(['config', 'check']);
  expect(flawed.stderr).toMatch(/ \| .*\n +\| +\^\n/);
  expect(stderr + flawed.stderr).not.toMatch(/hush[12356]/);
});

test('config check accepts the group file in docs/settings.md, lists the fields for an invalid one, and reports an unreadable one', async () => {
  using home = new CliHome();
  const page = readFileSync(new URL('../../docs/settings.md', import.meta.url), 'utf8');
  const [, example = ''] = /## A group file\n.+?```yaml\n(.+?)```/s.exec(page) ?? [];
  writeFileSync(home.path('rankd.yaml'), 'platform: { group_file: group.yaml }\n');
  writeFileSync(home.path('group.yaml'), example);
  expect(await home.here(['config', 'check'])).toMatchObject({ code: 0, stderr: '' });
  expect((await home.here(['rank', 'show', 'Scout_11'])).stdout).toMatch(/^10 +Scout/m);
  writeFileSync(home.path('group.yaml'), 'name: X\n');
  const wrong = await home.here(['config', 'check', '--offline']);
  expect(wrong.code).toBe(78);
  expect(wrong.stderr).toMatch(/group\.yaml:1:1 acting_account must be/);
  expect(wrong.stderr).toMatch(/\ntry: correct it; a group file has name, id, roles, owner, acting_account, members: /);
  for (const field of ['name', 'id', 'roles', 'owner', 'acting_account', 'members'])
    expect(page.split('## A group file')[1]).toMatch(new RegExp(`^\\|.*\`${field}\``, 'm'));
  rmSync(home.path('group.yaml'));
  expect((await home.here(['config', 'check'])).stderr).toMatch(/^error: The group file \S+group\.yaml cannot be read/);
  writeFileSync(home.path('rankd.yaml'), 'platform: { group_file: /dev/zero }\n');
  expect((await home.here(['config', 'check'])).stderr).toMatch(
    /^error: The group file \/dev\/zero cannot be read \(EFBIG\)/,
  );
});

test('config check does not show a line if all of it could be a secret', async () => {
  using home = new CliHome();
  writeFileSync(home.path('rankd.yaml'), '  hush\nlog: {}\n');
  expect((await home.here(['config', 'check'])).stderr).toMatch(
    /^error: rankd\.yaml:1:\d+: invalid YAML: .+\ntry: .+\n$/,
  );
});

test('config check with a file as its argument explains --config', async () => {
  using home = new CliHome();
  expect(await home.here(['config', 'check', 'other.yaml'])).toMatchObject({
    code: 2,
    stderr: 'error: The file to check must be given with --config.\ntry: rankd config check --config other.yaml\n',
  });
});

test('config path prints the configuration file in use', async () => {
  using home = new CliHome();
  expect((await home.here(['config', 'path'])).stderr).toContain('/etc/rankd/rankd.yaml');
  writeFileSync(home.path('rankd.yaml'), '');
  expect((await home.here(['config', 'path'])).stdout).toBe(`${home.path('rankd.yaml')}\n`);
});

test.each([['key', 'list'], ['status'], ['config', 'path'], ['config', 'check'], ['serve']])(
  'a file named with --config must exist, even if it is not needed: %s %s',
  async (...words) => {
    using home = new CliHome();
    const args = words.filter((word) => word !== undefined);
    const { code, stdout, stderr } = await home.here(['--config', './no/such.yaml', ...args]);
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toContain('error: The configuration file ./no/such.yaml does not exist.\ntry: check the path');
  },
);

test.each(['config path', 'config show', 'rank show 1001', 'serve', 'key create shop', 'key list', 'status'])(
  'a file named by RANKD_CONFIG must exist for commands that use the configuration or the database: %s',
  async (line) => {
    using home = new CliHome();
    const { code, stdout, stderr } = await home.here(line.split(' '), { env: { RANKD_CONFIG: './none.yaml' } });
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toContain('error: The configuration file ./none.yaml does not exist.\ntry: check the path');
  },
);

test.each([
  ['a link to a file that does not exist', (path: string) => symlinkSync('/nowhere', path), 'is a link to a file'],
  ['a folder', (path: string) => mkdirSync(path), 'is a folder, not a file'],
  ['larger than a megabyte', (path: string) => writeFileSync(path, '#'.repeat(2_000_000)), 'is larger than'],
])('if rankd.yaml is %s, key create does not fall back to SQLite', async (_, make, says) => {
  using home = new CliHome();
  make(home.path('rankd.yaml'));
  const { code, stdout, stderr } = await home.here(['key', 'create', 'shop']);
  expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
  expect(stderr).toContain(says);
});

test('a missing file in RANKD_CONFIG stops no command that needs neither', async () => {
  using home = new CliHome();
  for (const line of ['version', 'man', 'completion bash'])
    expect((await home.here(line.split(' '), { env: { RANKD_CONFIG: './none.yaml' } })).code).toBe(0);
});

test.runIf(process.getuid?.() === 0)(
  'root ignores a rankd.yaml in another user’s folder: no key is read, and no call is made',
  async () => {
    using home = new CliHome();
    writeFileSync(home.path('roblox.key'), 'REAL-KEY', { mode: 0o600 });
    const yaml = `group: {id: 7}\nplatform: {api_key_file: ${home.path('roblox.key')}, base_url: 'http://127.0.0.1:9'}\n`;
    writeFileSync(home.path('rankd.yaml'), yaml);
    chownSync(home.path('rankd.yaml'), 65_534, 65_534);
    chmodSync(home.cwd, 0o1777);
    for (const args of [
      ['rank', 'show', '1001'],
      ['config', 'path'],
      ['serve', '--port', '0'],
      ['config', 'check'],
    ]) {
      expect(await home.here(args)).toMatchObject({
        code: 77,
        stdout: '',
        stderr: `error: rankd found the configuration file ${home.path('rankd.yaml')}, but did not read it: it belongs to another user (uid 65534).
try: if you trust its contents, name it with --config ${home.path('rankd.yaml')}; otherwise, run rankd in your own folder
`,
      });
    }
    expect((await home.here(['config', 'path', '--config', 'rankd.yaml'])).code).toBe(0);
  },
);

test('with an empty HOME, rankd searches the user’s home for its configuration, not the current folder', async () => {
  using home = new CliHome();
  const { searched } = (await home.here(['config', 'path', '--json'], { env: { HOME: '' } })).json<{
    searched: string[];
  }>();
  expect(searched[1]).toBe(join(userInfo().homedir, '.config', 'rankd', 'rankd.yaml'));
});

test('config schema prints the JSON Schema of the settings as one document', async () => {
  using home = new CliHome();
  const { stdout } = await home.here(['config', 'schema', '--json']);
  expect(JSON.parse(stdout)).toMatchObject({
    type: 'object',
    properties: { server: { properties: { port: { default: 7265 } } } },
  });
});

test('the hint for a missing role does not name the configuration file if a variable names the role', async () => {
  using home = new CliHome();
  const env = { RANKD_POLICY_LOCKED_ROLES: 'Captin' };
  const { code, stderr } = await home.here(['config', 'check'], { env });
  expect({ code, stderr }).toEqual({
    code: 78,
    stderr: expect.stringContaining(
      'try: correct policy.locked_roles (`rankd config show --origin` shows where it is set); ',
    ),
  });
  const { stdout } = await home.here(['config', 'show', '--origin'], { env });
  expect(stdout).toMatch(/^policy\.locked_roles .*RANKD_POLICY_LOCKED_ROLES/m);
});

test.each<[env: Record<string, string>, rank: string]>([
  [{ RANKD_POLICY_LOCKED_ROLES: 'Captain' }, 'Captain'],
  [{ RANKD_POLICY_MAX_RANK: '10' }, 'Captain'],
  [{ RANKD_POLICY_MIN_RANK: '20' }, 'Trainee'],
  [{ RANKD_POLICY_STEPS: 'adjacent' }, 'Captain'],
  [{ RANKD_POLICY_PROTECTED_MEMBERS: '1001' }, 'Trainee'],
])('a refusal by a rule set with %o does not name the configuration file', async (env, rank) => {
  using home = new CliHome();
  const { code, stderr } = await home.here(['rank', 'set', '1001', rank], { env });
  expect({ code, stderr }).toEqual({
    code: 5,
    stderr: expect.stringMatching(/try: .* policy\.\w+.* \(`rankd config show --origin` shows where it is set\)/),
  });
});
