import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DaemonHere } from '../support/daemon-here.ts';
import { sampleRoles, sampleUsers } from '../support/fake-open-cloud/index.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';
import { createPostgresDatabase } from '../support/postgres-database.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';

const { captain, officer } = sampleRoles;
const bob = String(sampleUsers.trainee);

function configure({ home }: OpenCloudHome, ...lines: string[]): (more: string) => void {
  const file = home.path('rankd.yaml');
  const text = readFileSync(file, 'utf8') + lines.join('\n');
  const write = (more: string) => writeFileSync(file, `${text}\n${more}\n`, { mode: 0o600 });
  return write;
}

interface Doctor {
  findings: Array<{ check: string; grade: string; text: string; fix: string | null }>;
}

const line =
  'correct policy.locked_roles (`rankd config show --origin` shows where it is set): write locked_roles: [125] and run: rankd reload (a variable needs a restart)';

for (const engine of ['SQLite', 'PostgreSQL']) {
  test(`a role that is locked by its rank stays locked when its rank changes, and every command prints the corrected line (${engine})`, async () => {
    await using system = await openCloudHome();
    await using database = engine === 'PostgreSQL' ? await createPostgresDatabase() : undefined;
    const { home, roblox } = system;
    await using sink = await startWebhookSink();
    const write = configure(
      system,
      'webhooks: { allow_private: [127.0.0.1] }',
      ...(database === undefined ? [] : [`store: { url: "${database.url}" }`]),
    );
    write('policy: { locked_roles: [50] }');
    const secret = database === undefined ? system.secret : await home.createKey();
    let daemon = await system.serve();
    const added = await home.here(['webhook', 'add', 'ops', '--events', 'alarms', '--no-test'], {
      input: sink.url,
    });
    expect(added.code).toBe(0);
    const give = async (rank: number, rankeeId = Number(bob)) => {
      const { status, json } = await daemon.rank(secret, { rankeeId, newRankId: rank });
      return [status, (json as { code?: string }).code];
    };
    const inShell = async (rank: number) => (await home.here(['rank', 'set', bob, String(rank)])).code;
    expect([await give(50), await inShell(50)]).toEqual([[403, 'rank_not_allowed'], 5]);

    const role = roblox.group.role(captain);
    Object.assign(role ?? {}, { rank: 125 });
    roblox.group.roles.push({ id: 99_000_001, name: 'Newcomer', rank: 50 });
    await home.here(['reload']); // makes the daemon read the current roles
    expect([await give(125), await inShell(125)]).toEqual([[403, 'rank_not_allowed'], 5]);
    expect(await give(50)).toEqual([200, undefined]);

    // the alarm reports that the entry now matches a role that the operator did not mean
    const drift =
      /names 50, which is role 70000050: Captain now has rank 125; Newcomer \(role id 99000001\) now matches the entry, but is not the intended role\.$/;
    const fix = `${line}; to use Newcomer (role id 99000001) instead: rankd reload --relearn`;
    const configurationEvents = () =>
      sink.received.map(({ event }) => event).filter(({ type }) => type.startsWith('configuration.'));
    await expect.poll(() => configurationEvents().map(({ type }) => type)).toEqual(['configuration.drifted']);
    expect(configurationEvents()).toMatchObject([
      { type: 'configuration.drifted', data: { subject: 'policy.locked_roles', detail: { entry: '50', fix } } },
    ]);
    const { status } = await home.json<{ status: { misfits: unknown[] } }>('status');
    expect(status.misfits).toEqual([
      { setting: 'policy.locked_roles', entry: '50', message: expect.stringMatching(drift), fix },
    ]);
    expect((await home.here(['status'])).stdout).toContain('write locked_roles: [125]');
    const doctor = async () => (await home.here(['doctor', '--json'])).json<Doctor>().findings;
    // doctor may time out on a busy machine
    await expect
      .poll(doctor)
      .toContainEqual({ check: 'roles', grade: 'FAIL', text: expect.stringMatching(drift), fix });
    expect(await home.here(['health', '--ready'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('warning: policy.locked_roles names 50'),
    });
    expect(await home.here(['config', 'check'])).toMatchObject({ code: 0, stderr: expect.stringContaining(fix) });

    // after a restart, or a reload of the same file, the setting means the same role and raises no second alarm
    await daemon.stop();
    daemon = await system.serve();
    await expect.poll(() => daemon.log).toContain('names 50');
    expect(await give(125)).toEqual([403, 'rank_not_allowed']);
    expect(await give(50)).toEqual([200, undefined]);
    const same = await home.here(['reload']);
    expect([same.code, same.stderr]).toEqual([0, expect.stringContaining('names 50')]);
    expect(await give(125)).toEqual([403, 'rank_not_allowed']);

    // the line that doctor suggests fixes the setting
    write('policy: { locked_roles: [125] }');
    expect((await home.here(['reload'])).code).toBe(0);
    expect(await give(125)).toEqual([403, 'rank_not_allowed']);
    await expect.poll(configurationEvents).toHaveLength(2);
    expect(configurationEvents()[1]).toMatchObject({
      type: 'configuration.fits',
      data: { subject: 'policy.locked_roles' },
    });
    expect((await home.json<{ status: { misfits: unknown[] } }>('status')).status.misfits).toEqual([]);

    // when the operator restores the old entry, it means the role that now has rank 50
    write('policy: { locked_roles: [50] }');
    expect((await home.here(['reload'])).code).toBe(0);
    expect(await give(50)).toEqual([403, 'rank_not_allowed']);
    expect(await give(125, sampleUsers.officer)).toEqual([200, undefined]);
    expect(roblox.violations()).toEqual([]);
  });
}

test('a reload with --relearn resolves each entry as written, and refuses one that names no role', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  configure(system)('policy: { locked_roles: [50] }');
  await using daemon = await system.serve();
  Object.assign(roblox.group.role(captain) ?? {}, { rank: 125 });
  const refused = await home.here(['reload', '--relearn']);
  expect([refused.code, refused.stderr]).toEqual([78, expect.stringContaining('50 is not a rank or role id')]);
  Object.assign(roblox.group.role(officer) ?? {}, { rank: 50 });
  expect((await home.here(['reload'])).stderr).toMatch(
    /warning: .*Captain now has rank 125; Officer .* is not the intended role/,
  );
  const relearned = await home.here(['reload', '--relearn']);
  expect([relearned.code, relearned.stderr]).toEqual([0, '']);
  const codes = await Promise.all(
    [50, 125].map(async (newRankId) => (await daemon.rank(system.secret, { rankeeId: 1001, newRankId })).status),
  );
  expect(codes).toEqual([403, 200]);
});

test('a start does not resolve known entries again: a missing role is a warning, and a typo stops the start', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const file = readFileSync(home.path('rankd.yaml'), 'utf8');
  const configured = (ladder: string, rest = '') =>
    writeFileSync(
      home.path('rankd.yaml'),
      `${file.replace(/group: \{ id: (\d+) \}/, `group: { id: $1, ladder: ${ladder} }`)}${rest}\n`,
    );
  configured('[Trainee, Officer, Captain]', 'policy: { protected_roles: [Captain], suspension: { role: Captain } }');
  await (await system.serve()).stop();
  roblox.group.roles = roblox.group.roles.filter(({ id }) => id !== captain);
  await using daemon = await system.serve();
  expect(daemon.log).toContain('the ladder continues without it');
  expect((await daemon.rank(system.secret, { rankeeId: 1001, newRankId: 20 })).status).toBe(200);
  const suspended = await home.here(['rank', 'suspend', bob, '--for', '1d']);
  expect([suspended.code, suspended.stderr]).toEqual([78, expect.stringContaining('no member can be suspended')]);
  expect((await home.here(['health', '--ready'])).code).toBe(0);
  await daemon.stop();
  configured('[Trainee, Oficer]');
  await expect(DaemonHere.start(home)).rejects.toThrow(/no role in the group is called .*Oficer/);
});

test('with every ladder role gone, no rank is changed, and /readyz and health report it; suspensions end, and records are shown', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  const file = readFileSync(home.path('rankd.yaml'), 'utf8');
  writeFileSync(
    home.path('rankd.yaml'),
    file.replace(/group: \{ id: (\d+) \}/, 'group: { id: $1, ladder: [Captain] }'),
  );
  await using daemon = await system.serve();
  expect((await home.here(['rank', 'suspend', bob, '--for', '1d'])).code).toBe(0);
  roblox.group.roles = roblox.group.roles.filter(({ id }) => id !== captain);
  await home.here(['reload']);
  const refused = await daemon.rank(system.secret, { rankeeId: sampleUsers.officer, newRankId: 10 });
  expect(refused).toMatchObject({ status: 409, json: { code: 'configuration_misfit' } });
  expect(await home.here(['health', '--ready'])).toMatchObject({
    code: 69,
    stderr: expect.stringContaining('group.ladder names "Captain"'),
  });
  expect((await home.here(['rank', 'unsuspend', bob])).code).toBe(0);
  expect(roblox.group.held(Number(bob))).toEqual([sampleRoles.trainee]);
  await roblox.close();
  expect(await home.here(['suspension', 'show', bob])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Trainee'),
  });
});

test('a key bounded by a role name is reported once the role has a different rank, or is gone', async () => {
  await using system = await openCloudHome();
  const { home, roblox } = system;
  await using daemon = await system.serve();
  expect((await home.here(['key', 'set', 'game', '--max-rank', 'Officer'])).code).toBe(0);
  Object.assign(roblox.group.role(officer) ?? {}, { rank: 60, name: 'Major' });
  await home.here(['reload']);
  expect((await daemon.rank(system.secret, { rankeeId: 1001, newRankId: 50 })).status).toBe(200);
  const findings = async () => {
    const doctor = (await home.here(['doctor', '--json'])).json<Doctor>();
    return doctor.findings.filter(({ check }) => check === 'roles');
  };
  const drifted = 'the max_rank of key game names 4400000020, which had rank 20: Major now has rank 60.';
  expect(await findings()).toMatchObject([{ grade: 'FAIL', text: drifted, fix: 'rankd key set game --max-rank RANK' }]);
  expect((await home.here(['key', 'set', 'game', '--max-rank', 'Major'])).code).toBe(0);
  expect(await findings()).toEqual([]);
  roblox.group.roles = roblox.group.roles.filter(({ id }) => id !== officer);
  await home.here(['reload']);
  expect(await findings()).toMatchObject([
    { text: expect.stringMatching(/^the max_rank of key game names 4400000020, which was Major/) },
  ]);
  expect((await home.here(['key', 'set', 'game', '--max-rank', '50'])).code).toBe(0);
  expect((await daemon.rank(system.secret, { rankeeId: 1001, newRankId: 10 })).status).toBe(200);
});
