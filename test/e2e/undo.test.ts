import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { runCli } from '../../src/cli/program.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { CallContext, Platform } from '../../src/ports/index.ts';
import { TerminalIo } from '../support/command-io.ts';
import { openTestApp, type TestApp } from '../support/open-test-app.ts';
import { CliHome } from '../support/run-cli.ts';

interface Undo {
  undo: {
    id: string;
    dryRun: boolean;
    changes: number;
    members: Array<{
      rankeeId: number;
      state: string;
      changeId: string | null;
      byChange: string | null;
      code: string | null;
    }>;
    left: number[];
  };
}

const members = [1001, 1002, 1003, 1004, 1005, 1006, 1007, 1009];
const captain = 8_589_934_642;
const base = 12_884_901_889;

test('a raid of demotions is undone exactly, with all roles of every member, and recorded with the operator as its author', async () => {
  await using raid = await startRaid();
  const before = await raid.held();
  for (const userId of members.slice(4)) await raid.rank(raid.secret, userId, 10);
  await raid.demote(...members);
  const after = await raid.held();
  expect(after).not.toEqual(before);

  const { undo } = await raid.undo('--key', 'main', '--since', '1h');
  expect(await raid.held()).toEqual(before);
  // Three to rank 10 (1005 already had it), and seven to the base role (1004 already had no other).
  expect(undo.changes).toBe(10);
  expect(states(undo)).toEqual(Object.fromEntries(members.filter((id) => id !== 1004).map((id) => [id, 'put_back'])));
  const { change } = await raid.home.json<{ change: Record<string, unknown> }>(
    'history',
    'show',
    undo.members[0]?.changeId ?? '',
  );
  expect(change).toMatchObject({
    state: 'applied',
    by: expect.stringMatching(/^cli:/),
    undoId: undo.id,
    undoOf: expect.stringMatching(/^chg_/),
    command: 'rankd history undo',
  });
  const { events } = await raid.home.json<{ events: unknown[] }>('audit', 'list', '--action', 'history.undo');
  expect(events).toMatchObject([
    {
      subject: undo.id,
      detail: { keyName: 'main', changes: 10, members: 7, put_back: 7, result: 'of 7 members, 7 put back' },
    },
  ]);

  const again = await raid.undo('--key', 'main', '--since', '1h');
  expect(new Set(Object.values(states(again.undo)))).toEqual(new Set(['already']));
  expect(again.undo.id).toBe(undo.id);
});

test('an undo is reverted by its id, and the revert by the first command', async () => {
  await using raid = await startRaid();
  const before = await raid.held();
  await raid.demote(1001, 1003, 1009);
  const after = await raid.held();
  const { undo } = await raid.undo('--place', '42', '--since', '1h');
  expect(await raid.held()).toEqual(before);
  const back = await raid.undo('--undo', undo.id);
  expect(Object.keys(states(back.undo))).toHaveLength(3);
  expect(await raid.held()).toEqual(after);
  await raid.undo('--place', '42', '--since', '1h');
  expect(await raid.held()).toEqual(before);
});

test('an unknown undo is reported as not found, not as nothing to do', async () => {
  await using raid = await startRaid();
  await raid.demote(1001);
  const { code, stderr } = await raid.home.here(['history', 'undo', '--undo', 'undo_never']);
  expect([code, stderr]).toEqual([3, expect.stringContaining('Undo undo_never does not exist, or changed nothing.')]);
});

test('members who were changed since, by rankd or on Roblox, are skipped and listed', async () => {
  await using raid = await startRaid();
  await raid.demote(1001, 1002, 1003, 1006);
  const other = await raid.app.createKey({ name: 'other' });
  const since = await raid.rank(other, 1001, 20);
  await raid.platform.assignRole({ userId: 1002, roleId: captain }, anyCall());
  const before = await raid.held();
  const { undo } = await raid.undo('--key', 'main', '--since', '1h');
  expect(states(undo)).toEqual({ 1001: 'changed_since', 1002: 'changed_since', 1003: 'put_back', 1006: 'put_back' });
  expect(undo.members.find(({ rankeeId }) => rankeeId === 1001)?.byChange).toBe(since);
  expect(undo.members.find(({ rankeeId }) => rankeeId === 1002)?.byChange).toBe(null);
  const now = await raid.held();
  expect([now[1001], now[1002]]).toEqual([before[1001], before[1002]]);
});

test('only the selected changes are undone', async () => {
  await using raid = await startRaid();
  const before = await raid.held();
  await raid.demote(1001);
  const between = new Date().toISOString();
  await raid.demote(1002);
  await raid.rank(await raid.app.createKey({ name: 'other' }), 1006, base, 77);
  const { undo } = await raid.undo('--ranker', '0', '--since', between);
  expect(states(undo)).toEqual({ 1002: 'put_back' });
  expect((await raid.held())[1002]).toEqual(before[1002]);
  expect(states((await raid.undo('--ranker', '77', '--since', '1h')).undo)).toEqual({ 1006: 'put_back' });
  expect(states((await raid.undo('--key', 'main', '--since', '1h', '--until', between)).undo)).toEqual({
    1001: 'put_back',
  });
  expect(await raid.held()).toEqual(before);
  const own = await raid.home.here(['rank', 'set', '1001', '50']);
  expect(own.code).toBe(0);
  const [newest] = await raid.app.store.listChanges({ limit: 1 });
  const since = new Date(newest?.requestedAt ?? 0).toISOString();
  const dryRun = await raid.undo('--by', 'cli', '--since', since, '--dry-run');
  expect(states(dryRun.undo)).toEqual({ 1001: 'would_put_back' });
  expect(states((await raid.undo('--by', String(newest?.by), '--since', since)).undo)).toEqual({ 1001: 'put_back' });
  expect(await raid.held()).toEqual(before);
});

test('one change is undone by its id, and all changes of a member by the user id alone', async () => {
  await using raid = await startRaid();
  const before = await raid.held();
  await raid.demote(1001, 1002);
  await raid.rank(raid.secret, 1003, 10);
  const changes = await raid.app.store.listChanges({ limit: 3 });
  const [first = ''] = changes.filter(({ rankeeId }) => rankeeId === 1001).map(({ id }) => id);
  expect(states((await raid.undo(first)).undo)).toEqual({ 1001: 'put_back' });
  expect(states((await raid.undo('--user', '1003')).undo)).toEqual({ 1003: 'put_back' });
  const held = await raid.held();
  expect([held[1001], held[1003]]).toEqual([before[1001], before[1003]]);
  expect(held[1002]).not.toEqual(before[1002]);
  const missing = await raid.home.here(['history', 'undo', first, 'chg_none', '-y']);
  expect(missing).toMatchObject({ code: 3, stderr: expect.stringContaining('There is no rank change chg_none.') });
  const io = new TerminalIo(raid.home, ['n']);
  expect(await runCli(['history', 'undo', ...changes.map(({ id }) => id)], io)).toBe(130);
  expect(io.err).toMatch(/Restore the roles of user \S+ \(1002\) \(3 changes\)\?/);
  expect(await raid.held()).toEqual(held);
});

test('an undo is not part of any other selection, so no command restores the result of a raid by mistake', async () => {
  await using raid = await startRaid();
  const before = await raid.held();
  await raid.demote(1001, 1003);
  await raid.undo('--key', 'main', '--since', '1h');
  await raid.home.json('rank', 'set', '1002', '50');
  const args = ['history', 'undo', '--by', 'cli', '--since', '1h', '-y'];
  const { undo } = await raid.home.json<Undo & { undo: { undosLeftOut: number } }>(...args, '--dry-run');
  expect([states(undo), undo.undosLeftOut]).toEqual([{ 1002: 'would_put_back' }, 2]);
  const result = await raid.home.here(args);
  expect(result.stderr).toContain('2 changes made by an undo were left out; --undo ID reverts that undo.');
  expect(await raid.held()).toEqual(before);
});

test('a name that a leaked key shares with a new key never selects only the new key', async () => {
  await using raid = await startRaid();
  const { home } = raid;
  const before = await raid.held();
  const idOf = async (name: string) => (await home.json<{ key: { id: string } }>('key', 'show', name)).key.id;
  const leaked = await idOf('main');
  await raid.demote(1001, 1002);
  await home.json('key', 'revoke', 'main', '-y');
  await raid.rank(await raid.app.createKey(), 1006, base);
  const now = await idOf('main');

  const doubt = `The name "main" now belongs to ${now}; before that, it belonged to ${leaked}.
try: use the id of the key, such as --key ${leaked}; rankd key list shows all
`;
  const refused = await home.here(['history', 'undo', '--key', 'main', '--since', '1h', '-y']);
  expect(refused).toMatchObject({
    code: 2,
    stdout: '',
    stderr: `SIMULATED GROUP: nothing here touches Roblox.\nerror: ${doubt}`,
  });
  for (const command of [
    ['history', 'list'],
    ['history', 'export'],
    ['audit', 'list'],
  ]) {
    const { code, stderr } = await home.here([...command, '--key', 'main']);
    expect([code, stderr]).toEqual([0, expect.stringContaining(`warning: ${doubt}`)]);
  }

  expect(states((await raid.undo('--key', leaked, '--since', '1h')).undo)).toEqual({
    1001: 'put_back',
    1002: 'put_back',
  });
  const { revokedAt } = (await raid.app.store.findKey(leaked)) ?? {};
  const since = new Date((revokedAt ?? 0) + 1).toISOString();
  expect(states((await raid.undo('--key', 'main', '--since', since)).undo)).toEqual({ 1006: 'put_back' });
  expect(await raid.held()).toEqual(before);
});

test('a dry run shows everything and changes nothing, not even a row', async () => {
  await using raid = await startRaid();
  await raid.demote(1001, 1003);
  const before = { held: await raid.held(), rows: raid.rows() };
  const { undo } = await raid.undo('--key', 'main', '--since', '1h', '--dry-run');
  expect(undo).toMatchObject({ dryRun: true, left: [] });
  expect(states(undo)).toEqual({ 1001: 'would_put_back', 1003: 'would_put_back' });
  const { stdout } = await raid.home.here(['history', 'undo', '--key', 'main', '--since', '1h', '--dry-run']);
  expect(stdout).toContain('holds Captain (rank 50), Trainee (rank 10), Member (rank 1) again');
  expect({ held: await raid.held(), rows: raid.rows() }).toEqual(before);
});

test('cooldown and breaker do not delay an undo, and protected members are not changed', async () => {
  await using raid = await startRaid();
  writeFileSync(
    raid.home.path('rankd.yaml'),
    'policy: { cooldown: 1h, protected_members: [1003], breaker: { demotions: 1 } }\nplatform: { kind: simulated }\n',
  );
  const before = await raid.held();
  for (const userId of [1001, 1002, 1005]) await raid.rank(raid.secret, userId, captain);
  await raid.rank(raid.secret, 1003, 20);
  const undone = (...more: string[]) =>
    raid.home.here(['history', 'undo', '--key', 'main', '--since', '1h', '--json', ...more]);
  const rows = raid.rows();
  expect(states((await undone('--dry-run')).json<Undo>().undo)).toMatchObject({
    1001: 'would_put_back',
    1003: 'refused',
  });
  expect(raid.rows()).toEqual(rows);

  const result = await undone('-y');
  expect(result.code).toBe(5);
  const { undo } = result.json<Undo>();
  expect(states(undo)).toEqual({ 1001: 'put_back', 1002: 'put_back', 1003: 'refused', 1005: 'put_back' });
  const refused = undo.members.find(({ state }) => state === 'refused');
  expect(refused?.code).toBe('member_protected');
  expect(await raid.app.app.store.findChange(refused?.changeId ?? '')).toMatchObject({
    state: 'refused',
    rankeeId: 1003,
  });
  const { 1003: _, ...others } = before;
  expect(await raid.held()).toMatchObject(others);
});

test('an undo needs confirmation; without a terminal, that is a usage error', async () => {
  await using raid = await startRaid();
  await raid.demote(1001, 1003);
  const after = await raid.held();
  const refused = await raid.home.here(['history', 'undo', '--key', 'main', '--since', '1h']);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  const args = ['history', 'undo', '--key', 'main', '--since', '1h'];
  const no = new TerminalIo(raid.home, ['perhaps', 'N']);
  expect(await runCli(args, no)).toBe(130);
  expect(no.err).toMatch(/Type y for yes or n for no; Enter means no\.\n.*\[y\/N\] Nothing was changed\.\n$/);
  expect(no.err).toMatch(/Restore the roles of user \S+ \(\d+\), user \S+ \(\d+\) \(2 changes\)\? \[y\/N\]/);
  expect(await raid.held()).toEqual(after);
  const yes = new TerminalIo(raid.home, ['y']);
  expect(await runCli(args, yes)).toBe(0);
  expect(yes.err).toContain('warning: key "main" still works');
  expect(yes.err).toContain(`\r\u001b[K[${'#'.repeat(24)}] 2/2`);
  expect(yes.out).toMatch(/^undo_\w+: of 2 members, 2 put back\.\n$/);
  const quiet = new TerminalIo(raid.home, ['y']);
  expect(await runCli([...args, '-q'], quiet)).toBe(0);
  expect(quiet.err).toBe('');
});

test.each([
  [['--since', '1h'], 'the changes to undo'],
  [['--key', 'main'], '--since'],
  [['--key', 'main', '--since', 'later'], '--since'],
])('an undo with only %j is a usage error', async (args, what) => {
  using home = new CliHome();
  const result = await home.here(['history', 'undo', ...args, '-y']);
  expect(result).toMatchObject({ code: 2, stdout: '' });
  expect(result.stderr).toContain(what);
});

test('an undo that was killed half-way is completed by the same command', async () => {
  using home = new CliHome();
  const crowd = Array.from({ length: 80 }, (_, index) => 2_001 + index);
  const list = crowd.map((id) => `  - { id: ${id}, roles: [${id % 2 ? '10, 20' : '20, 30'}] }`).join('\n');
  writeFileSync(home.path('group.yaml'), `${crowdedGroup}${list}\n`);
  writeFileSync(
    home.path('rankd.yaml'),
    'server: { deadline: 1s }\nplatform: { kind: simulated, group_file: group.yaml }\n',
  );
  await using raid = await startRaid({ home });
  const before = await raid.held(crowd);
  await raid.demote(...crowd);
  const args = ['history', 'undo', '--key', 'main', '--since', '1h', '-y'];
  const killed = home.start(args);
  await expect.poll(() => raid.applied(), { interval: 5 }).toBeGreaterThan(crowd.length + 5);
  killed.kill('SIGKILL');
  const { undo } = await raid.undo('--key', 'main', '--since', '1h');
  expect(await raid.held(crowd)).toEqual(before);
  expect(undo.left).toEqual([]);
  expect(new Set(Object.values(states(undo)))).toEqual(new Set(['put_back', 'already']));
});

const crowdedGroup = `name: Crowd
id: 7
roles:
  - { name: Member, rank: 1, base: true, id: ${base} }
  - { name: Trainee, rank: 10 }
  - { name: Officer, rank: 20 }
  - { name: Captain, rank: 30 }
  - { name: Admin, rank: 200 }
acting_account: 2
members:
  - { id: 2, roles: [200] }
`;

interface Raid extends AsyncDisposable {
  home: CliHome;
  app: TestApp;
  platform: Platform;
  /** The secret of the key `main`, which has leaked. */
  secret: string;
  /** Changes a rank over HTTP. Resolves with the change's id. */
  rank(secret: string, userId: number, newRankId: number, rankerId?: number): Promise<string>;
  demote(...userIds: number[]): Promise<void>;
  held(userIds?: number[]): Promise<Record<number, number[] | undefined>>;
  /** Runs `rankd history undo … -y`, which must succeed. */
  undo(...args: string[]): Promise<Undo>;
  applied(): number;
  rows(): unknown;
}

test('--last reverts only the newest change, or the newest selected one, and never an undo', async () => {
  await using raid = await startRaid();
  const before = await raid.held();
  await raid.rank(raid.secret, 1001, 20);
  const second = await raid.rank(raid.secret, 1002, 10);
  const dryRun = await raid.undo('--last', '--dry-run');
  expect(dryRun.undo).toMatchObject({ changes: 1, members: [{ rankeeId: 1002 }] });
  expect(second).toMatch(/^chg_/);
  expect((await raid.undo('--last')).undo).toMatchObject({ members: [{ rankeeId: 1002, state: 'put_back' }] });
  expect((await raid.undo('--last')).undo).toMatchObject({ members: [{ rankeeId: 1002, state: 'already' }] });
  expect((await raid.undo('--last', '--user', '1001')).undo).toMatchObject({ members: [{ rankeeId: 1001 }] });
  expect(await raid.held()).toEqual(before);
  const none = await raid.home.here(['history', 'undo', '--last', '--user', '1009']);
  expect(none).toMatchObject({ code: 3, stderr: expect.stringContaining('No rank change is left to undo.') });
  expect((await raid.home.here(['history', 'undo', '--last', second])).code).toBe(2);
});

async function startRaid({ home = new CliHome() }: { home?: CliHome } = {}): Promise<Raid> {
  const { config } = loadConfig({ flags: { 'platform.kind': 'simulated' }, env: {}, cwd: home.cwd });
  const off = { ...config.policy, breaker: { ...config.policy.breaker, enabled: false } };
  const limits = { rankPerMinute: 0, rankBurst: 0 };
  mkdirSync(home.dataDir, { mode: 0o700 });
  const app = await openTestApp({ dataDir: home.dataDir, config: { platform: config.platform, policy: off, limits } });
  const secret = await app.createKey();
  const count = (sql: string) => {
    const database = new Database(join(home.dataDir, 'rankd.db'), { readonly: true });
    try {
      return database.prepare(sql).pluck().all();
    } finally {
      database.close();
    }
  };
  const rank: Raid['rank'] = async (key, userId, newRankId, rankerId = 0) => {
    const { status, text, headers } = await app.rank(key, { rankerId, rankeeId: userId, newRankId });
    expect(status, text).toBe(200);
    return String(headers['x-rank-change']);
  };
  return {
    ...{ home, app, platform: app.app.platform, secret, rank },
    demote: async (...userIds) => {
      for (const userId of userIds) await rank(secret, userId, base);
    },
    held: async (userIds = members) =>
      Object.fromEntries(await Promise.all(userIds.map(async (id) => [id, await app.heldBy(id)]))),
    undo: (...args) => home.json<Undo>('history', 'undo', ...args, '-y'),
    applied: () => Number(count("SELECT count(*) FROM rank_changes WHERE state = 'applied'")[0]),
    rows: () => count('SELECT count(*) FROM rank_changes UNION ALL SELECT count(*) FROM audit_events'),
    [Symbol.asyncDispose]: async () => {
      await app.close();
      home[Symbol.dispose]();
    },
  };
}

function states({ members: of }: Undo['undo']): Record<number, string> {
  return Object.fromEntries(of.map(({ rankeeId, state }) => [rankeeId, state]));
}

function anyCall(): CallContext {
  return { signal: new AbortController().signal, deadlineAt: Number.POSITIVE_INFINITY, lane: 'test' };
}
