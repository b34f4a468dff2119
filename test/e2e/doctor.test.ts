import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { portFindings } from '../../src/cli/machine-findings.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { sampleUsers } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { CliHome } from '../support/run-cli.ts';

interface Finding {
  check: string;
  grade: 'ok' | 'warn' | 'FAIL';
  text: string;
  fix: string | null;
}

function newHome(): CliHome {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  writeFileSync(home.path('rankd.yaml'), 'server: { port: 0 }\n'); // another daemon may use the default port
  return home;
}

async function complaints(home: CliHome, ...args: string[]): Promise<{ code: number | null; found: Finding[] }> {
  const result = await home.here(['doctor', '--json', ...args]);
  const { findings } = result.json<{ findings: Finding[] }>();
  return { code: result.code, found: findings.filter(({ grade }) => grade !== 'ok') };
}

test('doctor reports no problem in a correct setup, and writes nothing to Roblox', async () => {
  await using system = await openCloudHome();
  await using _daemon = await system.serve();
  expect(await complaints(system.home)).toEqual({ code: 0, found: [] });
  expect(system.roblox.journal.writes()).toEqual([]);
});

test('without a database, doctor checks the rest and creates nothing', async () => {
  const home = newHome();
  const { code, found } = await complaints(home);
  expect(code).toBe(0);
  expect(found.map(({ check }) => check)).toEqual(['data', 'platform']);
  expect(readdirSync(home.folder)).not.toContain('data');
});

test('text output has a line for each check, problems with their fix below, and no escape codes', async () => {
  const home = newHome();
  await home.createKey();
  await home.json('workspace', 'suspend', '-y');
  const { code, stdout } = await home.here(['doctor', '--offline']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ok {4}node +Node\.js \d+/m);
  expect(stdout).toMatch(/^warn {2}workspace +suspended: every key is refused\n +try: rankd workspace resume$/m);
  expect(stdout).not.toContain('\u001b');
});

test('an invalid configuration fails, and checks that do not need it still run', async () => {
  const home = newHome();
  await home.createKey();
  writeFileSync(home.path('rankd.yaml'), 'server: { port: 99999 }\n');
  const { code, found } = await complaints(home);
  expect(code).toBe(5);
  expect(found).toMatchObject([{ check: 'config', grade: 'FAIL', text: expect.stringContaining('rankd.yaml:1:17') }]);
});

test('files that others can read fail, with the command to protect them', async () => {
  const home = newHome();
  await home.createKey();
  chmodSync(join(home.dataDir, 'rankd.db'), 0o644);
  const { code, found } = await complaints(home, '--offline');
  expect(code).toBe(5);
  expect(found).toContainEqual(
    expect.objectContaining({ check: 'data', grade: 'FAIL', fix: `chmod -R go= ${home.dataDir}` }),
  );
});

test('a damaged database fails, and is not changed', async () => {
  const home = newHome();
  await home.createKey();
  const file = join(home.dataDir, 'rankd.db');
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(7, 8_192, 40_000));
  const { code, found } = await complaints(home, '--offline');
  expect(code).toBe(5);
  expect(found).toContainEqual(
    expect.objectContaining({ check: 'database', grade: 'FAIL', fix: expect.stringContaining('rankd restore FILE') }),
  );
  expect(readFileSync(file).equals(bytes)).toBe(true);
});

test('a port that another program uses fails', async () => {
  const home = newHome();
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as AddressInfo;
  writeFileSync(home.path('rankd.yaml'), `server: { port: ${port} }\n`);
  const { code, found } = await complaints(home, '--offline');
  expect(code).toBe(5);
  expect(found).toContainEqual(expect.objectContaining({ check: 'port', grade: 'FAIL' }));
});

test('with an unreadable or unprotected data directory, its daemon is not reported as a different program', async () => {
  const home = newHome();
  await using daemon = await DaemonHere.start(home);
  writeFileSync(home.path('rankd.yaml'), `server: { port: ${new URL(daemon.url).port} }\n`);
  chmodSync(join(home.dataDir, 'rankd.db'), 0o644);
  const open = await home.here(['doctor', '--offline']);
  expect(open.stdout).toMatch(/^FAIL {2}data .*^ok {4}port +a daemon is running on this data directory$/ms);
  const { port } = new URL(daemon.url);
  const unknown = await portFindings({ host: '127.0.0.1', port: Number(port) }, undefined);
  expect(unknown).toMatchObject([{ grade: 'warn', text: `127.0.0.1:${port} is in use, perhaps by this rankd` }]);
});

test('a dead key, one without group:write, and one that expires soon are distinguished', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const credentialFindings = async () => (await complaints(home)).found.filter(({ check }) => check === 'credential');
  roblox.credential.expirationTimeUtc = new Date(Date.now() + 5 * 86_400_000).toISOString();
  expect(await credentialFindings()).toMatchObject([{ grade: 'warn', text: expect.stringContaining('expires in') }]);
  roblox.credential.scopes = [{ name: 'group', operations: ['read'], groupIds: ['*'] }];
  const warned = [expect.stringContaining('does not list group:write'), expect.stringContaining('expires in')];
  const fix = expect.stringContaining('the scopes and the expiry');
  expect(await credentialFindings()).toMatchObject(warned.map((text) => ({ grade: 'warn', text, fix })));
  roblox.credential.enabled = false;
  expect(await credentialFindings()).toMatchObject([{ grade: 'FAIL' }]);
});

test('a clock that differs from the platform’s is reported, with the direction', async () => {
  await using system = await openCloudHome();
  let platformIsAheadMs = 0;
  const methods = new Set<string | undefined>();
  const server = createServer(({ method }, response) => {
    methods.add(method);
    response.sendDate = false;
    const date = new Date(Date.now() + platformIsAheadMs).toUTCString();
    response.writeHead(404, { date, 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const env = { RANKD_PLATFORM_BASE_URL: `http://127.0.0.1:${port}` };
  const clockFinding = async () => {
    const result = await system.home.here(['doctor', '--json'], { env });
    return result.json<{ findings: Finding[] }>().findings.find(({ check }) => check === 'clock');
  };
  expect(await clockFinding()).toMatchObject({ grade: 'ok' });
  platformIsAheadMs = 3_600_000;
  expect(await clockFinding()).toMatchObject({
    ...{ grade: 'warn', text: expect.stringMatching(/^3\d{3} seconds behind/) },
    fix: expect.stringMatching(/^turn on NTP/),
  });
  platformIsAheadMs = -3_600_000;
  expect(await clockFinding()).toMatchObject({
    grade: 'warn',
    text: expect.stringMatching(/^3\d{3} seconds ahead of/),
  });
  expect([...methods].toSorted()).toEqual(['GET', 'POST']); // Open Cloud has no HEAD operations
});

test('the first line about the key quotes Roblox’s refusal of this machine’s address', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const body = JSON.stringify({ errors: [{ code: 0, message: 'IP address is not allowed' }] });
  roblox.faults.add({ operation: 'any', kind: 'status 401', times: 100, body });
  const { findings } = (await home.here(['doctor', '--json'])).json<{ findings: Finding[] }>();
  expect(findings.find(({ grade }) => grade === 'FAIL')).toMatchObject({
    ...{ check: 'credential', text: expect.stringContaining('IP address is not allowed') },
    fix: expect.stringContaining('allows this address'),
  });
});

test.each<[string, Record<string, string>, string | undefined, string?]>([
  ['is set and not used', { HTTP_PROXY: 'http://u:geheim@proxy:3128' }, 'warn'],
  ['is not for this host', { HTTP_PROXY: 'http://u:geheim@proxy:3128', NO_PROXY: '127.0.0.1' }, undefined],
  ['is used', { HTTP_PROXY: 'http://u:geheim@proxy:3128', NODE_USE_ENV_PROXY: '1' }, 'ok', '24.5.0'],
  ['this Node.js cannot use', { HTTP_PROXY: 'http://u:geheim@proxy:3128', NODE_USE_ENV_PROXY: '1' }, 'warn', '22.14.0'],
])(
  'a proxy from the environment that %s gets the right finding, without its password',
  async (_, env, grade, nodeVersion = '24.5.0') => {
    await using system = await openCloudHome();
    const { stdout } = await system.home.here(['doctor', '--json'], { env, nodeVersion });
    const { findings } = JSON.parse(stdout) as { findings: Finding[] };
    expect(findings.find(({ check }) => check === 'proxy')?.grade).toBe(grade);
    expect(stdout.includes('NODE_USE_ENV_PROXY does not work on Node.js 22.14.0')).toBe(nodeVersion === '22.14.0');
    expect(stdout).not.toContain('geheim');
  },
);

test('an unavailable or hanging platform is reported only by the checks that call it, with the fix', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const problemsFound = async () => {
    const result = await home.here(['doctor', '--json'], { env: { RANKD_SERVER_DEADLINE: '1s' } });
    return result.json<{ findings: Finding[] }>().findings.filter(({ grade }) => grade !== 'ok');
  };
  const platformFailure = (text: string) => [
    { check: 'platform', grade: 'FAIL', text: expect.stringContaining(text), fix: expect.stringContaining('check') },
  ];
  roblox.faults.add({ operation: 'any', kind: 'hang', times: 100 });
  expect(await problemsFound()).toEqual(platformFailure('it does not respond in time'));
  await roblox.close();
  expect(await problemsFound()).toEqual(platformFailure('it refuses connections (ECONNREFUSED)'));
});

test('an acting account without permission or reach, or outside the group, fails; with --offline, doctor makes no calls', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const [admin] = roblox.group.held(roblox.credential.userId) ?? [];
  Object.assign(roblox.group.role(admin ?? 0) ?? {}, { changeRank: false });
  const { findings } = (await home.here(['doctor', '--json'])).json<{ findings: Finding[] }>();
  expect(findings).toContainEqual(expect.objectContaining({ check: 'permission', grade: 'FAIL' }));
  expect(findings.filter(({ check }) => check === 'reach')).toEqual([]);
  roblox.group.setMember(roblox.credential.userId, []);
  expect((await complaints(home)).found).toContainEqual(expect.objectContaining({ check: 'reach', grade: 'FAIL' }));
  roblox.group.removeMember(roblox.credential.userId);
  expect((await complaints(home)).found).toContainEqual({
    check: 'acting account',
    grade: 'FAIL',
    text: 'user RankBot (9001), not a member of the group',
    fix: 'add that account to the group, and give it a role there',
  });
  const callCount = roblox.journal.entries.length;
  expect((await complaints(home, '--offline')).code).toBe(0);
  expect(roblox.journal.entries.length).toBe(callCount);
});

test('doctor warns of privileged roles that any key can give, and of unknown permissions if privileged roles are reserved', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const setting = (value: string) => ({ env: { RANKD_POLICY_PRIVILEGED_ROLES: value } });
  const privilegedFindings = async (value: string) => {
    const { findings } = (await home.here(['doctor', '--json'], setting(value))).json<{ findings: Finding[] }>();
    return findings.filter(({ check }) => check === 'privileged').map(({ grade, text }) => `${grade} ${text}`);
  };
  const unreported =
    'Roblox does not report the permissions of these roles: 1 (Recruit), 10 (Trainee), 20 (Officer), 50 (Captain)';
  expect(await privilegedFindings('allow')).toEqual([]);
  expect(await privilegedFindings('operator')).toEqual([`warn ${unreported}`]);
  expect(await privilegedFindings('50')).toEqual([expect.stringMatching(/^ok only the operator, .* 50 \(Captain\)$/)]);
  roblox.credential.userId = sampleUsers.owner;
  expect(await privilegedFindings('allow')).toEqual(['warn every key may give and take 50 (Captain), 200 (Admin)']);
  expect(await privilegedFindings('operator')).toEqual([
    expect.stringMatching(/^ok only the operator, .* 50 \(Captain\), 200 \(Admin\)$/),
  ]);
});

test("doctor and init warn of a Roblox key of the owner's own account, and name the alternative", async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const flags = ['--group', String(roblox.groupId), '--credential-file', 'roblox.key', '--force'];
  const env = { RANKD_PLATFORM_BASE_URL: roblox.baseUrl, RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl };
  const accountFindings = async () => (await complaints(home)).found.filter(({ check }) => check === 'acting account');
  const initStderr = async () => (await home.here(['init', ...flags], { env })).stderr;
  expect(await accountFindings()).toEqual([]);
  roblox.credential.userId = sampleUsers.owner;
  expect(await accountFindings()).toMatchObject([
    { grade: 'warn', fix: expect.stringMatching(/^create an account only for rankd/) },
  ]);
  expect(await initStderr()).toMatch(/^warning: anyone who obtains the owner's Roblox key .+\ntry: create an account/m);
  roblox.credential.userId = sampleUsers.actor;
  expect(await initStderr()).not.toContain('warning');
});

test('roles with the same rank, and unlisted or unpublished places, are reported', async () => {
  await using system = await openCloudHome();
  const { home, roblox, secret } = system;
  const [, , role] = roblox.group.roles;
  if (role !== undefined) roblox.group.roles.push({ ...role, id: role.id + 1, name: 'Twin' });
  const daemon = await system.serve();
  for (const place of [77, 0]) await daemon.post(`/v1/ranker?placeid=${place}`, { key: secret, body: {} });
  await daemon.stop();
  const { code, found } = await complaints(home);
  expect(code).toBe(0);
  expect(found.map(({ check, fix }) => [check, fix])).toEqual([
    ['whitelist', 'publish the game from Roblox Studio, then: rankd whitelist add PLACE --key game'],
    ['whitelist', 'rankd whitelist add 77 --key game'],
    ['ranks', 'send the role id, or give them different ranks'],
  ]);
});

test('a key without a place, one that needs none, and no key at all, are reported', async () => {
  const home = newHome();
  await home.json('key', 'create', 'lonely');
  const found = async () => (await complaints(home, '--offline')).found.map(({ text }) => text);
  expect(await found()).toContain('lonely has no active place on its whitelist');
  await home.json('key', 'set', 'lonely', '--any-place');
  expect(await found()).toContain('lonely needs no place: anyone who has it can use it from anywhere');
  expect((await home.here(['key', 'list'])).stdout).toContain('any place');
  await home.json('key', 'revoke', 'lonely', '-y');
  expect(await found()).toContain('no key works');
});

test('an acting account or permissions that Roblox does not report are shown as unknown', async () => {
  await using system = await openCloudHome();
  const { credential } = system.roblox;
  Object.assign(credential, { userId: undefined, expirationTimeUtc: '0001-01-01T00:00:00Z' });
  const { findings } = (await system.home.here(['doctor', '--json'])).json<{ findings: Finding[] }>();
  const textOf = (check: string) => findings.filter((one) => one.check === check).map(({ text }) => text);
  expect(textOf('credential')).toEqual([
    expect.stringMatching(/^valid; Roblox does not report whether it may change roles/),
  ]);
  expect(textOf('acting account')).toEqual(['Roblox does not report the acting account or the ranks that it can give']);
  expect(textOf('reach')).toEqual([]);
});

test('an unknown base role is a warning', async () => {
  await using system = await openCloudHome();
  Object.assign(system.roblox, { hasPublicRoles: false, rolesField: 'absent' });
  const { findings } = (await system.home.here(['doctor', '--json'])).json<{ findings: Finding[] }>();
  expect(findings).toContainEqual(
    expect.objectContaining({
      grade: 'warn',
      check: 'ranks',
      text: expect.stringMatching(/does not report which of these roles every member holds: .*Recruit/),
    }),
  );
});

test('a key that Roblox does not describe is a warning, and everything that depends on it is unknown', async () => {
  await using system = await openCloudHome();
  await system.home.here(['group', 'roles']); // creates the database
  system.roblox.faults.add({ operation: 'introspect', kind: 'status 403', body: '<html>no</html>', times: 99 });
  const { code, found } = await complaints(system.home);
  expect(code).toBe(0);
  expect(found.slice(0, 2)).toEqual([
    expect.objectContaining({
      check: 'credential',
      grade: 'warn',
      text: expect.stringContaining('does not report the state'),
    }),
    expect.objectContaining({ check: 'acting account', grade: 'warn' }),
  ]);
});

test('a group that Roblox has locked is reported', async () => {
  await using system = await openCloudHome();
  await system.home.here(['group', 'roles']); // creates the database
  const { roblox } = system;
  roblox.faults.add({
    operation: 'group',
    kind: 'body',
    body: JSON.stringify({ id: `${roblox.groupId}`, locked: true }),
  });
  const { code, found } = await complaints(system.home);
  expect(code).toBe(5);
  expect(found).toEqual([expect.objectContaining({ check: 'group', text: expect.stringContaining('locked') })]);
  roblox.group.locked = true; // makes the fake refuse to read the group
  expect((await complaints(system.home)).found).toContainEqual(
    expect.objectContaining({ check: 'group', text: expect.stringContaining('Roblox has locked the group') }),
  );
});
