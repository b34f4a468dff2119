import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import type { RankChange } from '../../src/core/model.ts';
import { engineOf } from '../../src/stores/engine.ts';
import { record } from '../contracts/store/samples.ts';
import { parseCsv } from '../support/parse-csv.ts';
import { CliHome } from '../support/run-cli.ts';

interface Changes {
  v: number;
  changes: Array<{ id: string; state: string; keyId: string | null }>;
}

const fields = [
  'id',
  'kind',
  'state',
  'code',
  'rankeeId',
  'rankeeName',
  'userName',
  'rankerId',
  'rankerName',
  'newRankId',
  'roleId',
  'rolesBefore',
  'rolesAfter',
  'keyId',
  'placeId',
  'command',
  'requestedAt',
  'finishedAt',
  'dryRun',
  'who',
  'via',
  'discordUserId',
  'keyName',
  'oldRoleId',
  'roles',
  'reason',
  'message',
  'by',
  'group',
  'simulated',
  'hold',
];

/** These fields have no CSV column. */
const listsOfObjects = ['roles'];
/** Only CSV has these columns. */
const nameColumns = [...['roleName', 'oldRoleName', 'rolesBeforeNames', 'rolesAfterNames', 'holdKind', 'holdEndsAt']];

/** The fields of a change that is shown alone or exported. */
const allFields = [...fields, 'phase', 'oldRankName', 'prefix', 'webhookHost', 'undoOf', 'undoId', 'idempotencyKey'];

function change(id: string, about: Partial<RankChange> = {}): RankChange {
  return {
    id,
    group: 'the simulated group',
    state: 'refused',
    code: 'cooldown',
    message: 'Too soon.',
    rankeeId: 1001,
    rankeeName: 'Ada',
    rankerId: 0,
    rankerName: 'operator',
    newRankId: 20,
    rolesBefore: [],
    rolesAfter: [],
    phase: 'forward',
    by: 'cli:op@host',
    dryRun: false,
    demotion: false,
    topRank: 20,
    privileged: false,
    requestedAt: Date.UTC(2026, 4, 1),
    ...about,
  };
}

async function keep(home: CliHome, ...changes: RankChange[]): Promise<void> {
  const store = await engineOf({ dataDir: home.dataDir, clock: systemClock }).openStore();
  for (const one of changes) await record(store, one);
  await store.close();
}

async function listed(home: CliHome, ...args: string[]): Promise<string[]> {
  return (await home.json<Changes>('history', 'list', ...args)).changes.map(({ id }) => id);
}

test.concurrent('history list has exactly the public fields of a change by `rank set`, with null for absent ones', async () => {
  using home = new CliHome();
  await home.json('rank', 'set', '1001', '20');
  const { v, changes } = await home.json<Changes>('history', 'list');
  expect(v).toBe(1);
  expect(changes).toHaveLength(1);
  expect(Object.keys(changes[0] ?? {})).toEqual(fields);
  expect(changes[0]).toMatchObject({
    id: expect.stringMatching(/^chg_/),
    state: 'applied',
    code: null,
    rankeeId: 1001,
    rankerId: 0,
    newRankId: 20,
    roleId: 70_020,
    keyId: null,
    placeId: null,
    dryRun: false,
    requestedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  });
});

test.concurrent('unknown values of a change are null: the later roles of an open one, the rank of an undo without one', async () => {
  using home = new CliHome();
  const held = { rolesBefore: [1, 2], rolesAfter: [1, 3] };
  await keep(
    home,
    change('chg_1', { undoId: 'undo_x', newRankId: 0 }),
    change('chg_2', { ...held, state: 'failed', rolesAfter: [], finishedAt: Date.UTC(2026, 4, 1) }),
    change('chg_3', { ...held, state: 'unknown' }),
  );
  const { changes } = await home.json<Changes>('history', 'list');
  expect(changes).toMatchObject([
    { rolesBefore: [1, 2], rolesAfter: null },
    { rolesBefore: [1, 2], rolesAfter: [] },
    { newRankId: null },
  ]);
  expect((await home.here(['history', 'list'])).stdout).toMatch(
    /refused \(simulated\) +op@host +Ada \(1001\) +→ \? +undo +- .* chg_1\n/,
  );
});

test.concurrent('a member without a given name is listed by id', async () => {
  using home = new CliHome();
  await keep(home, change('chg_named'), change('chg_bare', { rankeeName: '' }));
  const { stdout } = await home.here(['history', 'list']);
  expect(stdout).toMatch(/refused \(simulated\) +op@host +1001 +→ 20 .* chg_bare\n/);
  expect(stdout).toMatch(/refused \(simulated\) +op@host +Ada \(1001\) +→ 20 .* chg_named\n/);
});

test.concurrent('history list names the ranker, both roles and the key', async () => {
  using home = new CliHome();
  await home.json('rank', 'set', '1001', '20', '--reason', 'passed the training');
  await home.json('rank', 'set', '1001', '10');
  const { key } = await home.json<{ key: { id: string } }>('key', 'create', 'my-game');
  const asked = { keyId: key.id, by: `key:${key.id}`, rankerId: 1003, rankerName: 'Builder' };
  const roles = [
    { id: 5, name: 'Trainee', rank: 10 },
    { id: 6, name: 'Officer', rank: 20 },
  ];
  const planned = { ...asked, roles, oldRoleId: 5, roleId: 6, state: 'applied', code: null } as const;
  await keep(home, change('chg_game', planned), change('chg_alone', { ...planned, rankerId: 0, rankerName: '' }));
  const { changes } = await home.json<{ changes: unknown[] }>('history', 'list');
  expect(changes).toMatchObject([
    { who: 'the game', via: 'my-game', keyName: 'my-game' },
    { who: 'Builder (1003)', via: 'my-game', keyName: 'my-game', oldRoleId: 5, roles, reason: null },
    { who: expect.stringMatching(/.@./), via: 'shell', keyName: null },
    {
      reason: 'passed the training',
      roleId: 70_020,
      oldRoleId: 70_010,
      roles: expect.arrayContaining([
        { id: 70_010, name: 'Trainee', rank: 10 },
        { id: 70_020, name: 'Officer', rank: 20 },
      ]),
    },
  ]);
  const [, , game, demotion, promotion] = (await home.here(['history', 'list'])).stdout.split('\n');
  expect(game).toMatch(/applied \(simulated\) +Builder \(1003\) +Ada \(1001\) +Trainee → Officer +my-game /);
  expect(demotion).toMatch(/applied \(simulated\) +\S+@\S+ +1001 +Officer → Trainee +shell /);
  expect(promotion).toMatch(/applied \(simulated\) +\S+@\S+ +1001 +Trainee → Officer +shell +passed the training /);
});

test.concurrent('a reason of more than 200 characters is refused, and one of 200 is stored in full', async () => {
  using home = new CliHome();
  const reason = '🎖'.repeat(200);
  const tooLong = await home.here(['rank', 'promote', '1001', '--reason', `${reason}!`]);
  expect(tooLong).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('It has 201 characters; the limit is 200.'),
  });
  await home.json('rank', 'promote', '1001', '--reason', reason);
  await home.json('rank', 'demote', '1001', '--reason', 'back');
  const { changes } = await home.json<{ changes: Array<{ reason: string }> }>('history', 'list');
  expect(changes.map((one) => one.reason)).toEqual(['back', reason]);
});

test.concurrent('history show adds the remaining fields of a change', async () => {
  using home = new CliHome();
  const full = change('chg_full', {
    state: 'applied',
    code: null,
    roleId: 8_589_934_642,
    oldRoleId: 1,
    rolesBefore: [1, 2],
    rolesAfter: [2],
    roles: [{ id: 2, name: 'Trainee', rank: 10 }],
    reason: 'passed the training',
    keyId: 'key_gone',
    placeId: 9_007_199_254_740_991,
    command: '!promote',
    oldRankName: 'Trainee',
    prefix: '!',
    webhookHost: 'hooks.example.com',
    undoOf: 'chg_before',
    undoId: 'undo_x',
    idempotencyKey: 'abc',
    by: 'key:key_gone',
    finishedAt: Date.UTC(2026, 4, 1, 0, 0, 1),
  });
  await keep(home, full, change('chg_bare'));
  const shown = await home.json<{ v: number; change: Record<string, unknown> }>('history', 'show', 'chg_full');
  const { demotion: _demotion, topRank: _topRank, privileged: _privileged, ...shownFields } = full;
  expect(shown).toEqual({
    v: 1,
    change: {
      ...shownFields,
      ...{
        kind: null,
        who: 'operator',
        via: 'key_gone',
        discordUserId: null,
        keyName: null,
        userName: null,
        simulated: true,
        hold: null,
      },
      requestedAt: '2026-05-01T00:00:00.000Z',
      finishedAt: '2026-05-01T00:00:01.000Z',
    },
  });
  expect((await home.here(['history', 'show', 'chg_full'])).stdout).toMatch(/roles before +1, Trainee \(2\)\n/);
  const bare = await home.json<{ change: Record<string, unknown> }>('history', 'show', 'chg_bare');
  expect(Object.keys(bare.change)).toEqual(allFields);
  expect(bare.change).toMatchObject({
    roleId: null,
    command: null,
    webhookHost: null,
    idempotencyKey: null,
    finishedAt: null,
  });
});

test.concurrent('history list has the newest changes first, up to the limit, filtered by key, member and state', async () => {
  using home = new CliHome();
  const { key } = await home.json<{ key: { id: string } }>('key', 'create', 'game');
  await keep(
    home,
    change('chg_1', { keyId: key.id }),
    change('chg_2', { rankeeId: 1002, state: 'failed', code: 'platform_busy' }),
    change('chg_3', { rankeeId: 1002, keyId: key.id, state: 'applied', code: null }),
    ...Array.from({ length: 20 }, (_, index) => change(`chg_old${index}`, { rankeeId: 7 })),
  );
  expect(await listed(home)).toHaveLength(20);
  expect(await listed(home, '--limit', '2')).toEqual(['chg_old19', 'chg_old18']);
  expect(await listed(home, '--key', 'game')).toEqual(['chg_3', 'chg_1']);
  expect(await listed(home, '--user', '1002')).toEqual(['chg_3', 'chg_2']);
  expect(await listed(home, '--state', 'failed', 'applied')).toEqual(['chg_3', 'chg_2']);
  expect(await listed(home, '--key', key.id, '--user', '1002', '--state', 'applied')).toEqual(['chg_3']);
  await home.here(['key', 'revoke', 'game', '-y']);
  expect(await listed(home, '--key', 'game')).toEqual(['chg_3', 'chg_1']);
});

test.concurrent('the history is filtered by place, ranker, operator and time', async () => {
  using home = new CliHome();
  await keep(
    home,
    change('chg_1', { placeId: 42, rankerId: 5, requestedAt: Date.UTC(2026, 4, 1, 18) }),
    change('chg_2', { placeId: 43, by: 'key:key_x', requestedAt: Date.UTC(2026, 4, 1, 19) }),
  );
  expect(await listed(home, '--place', '42', '--ranker', '5', '--until', '2026-05-01T20:30+02:00')).toEqual(['chg_1']);
  expect(await listed(home, '--ranker', '0', '--by', 'key:key_x', '--since', '2026-05-01T18:30Z')).toEqual(['chg_2']);
});

test.concurrent('the export has every selected change once, newest first, as CSV, JSON lines or one JSON document', async () => {
  using home = new CliHome();
  const ids = Array.from({ length: 1_001 }, (_, index) => `chg_${index}`);
  const awkward = {
    ...{ rankeeName: '=cmd|"x"!A1, "y"\nz', rolesBefore: [1, 2], command: '@x' },
    roles: [{ id: 1, name: 'Trainee', rank: 10 }],
    ...{ rankerName: '＝cmd', oldRankName: '＋1', prefix: '－1' },
  };
  await keep(home, ...ids.map((id, index) => change(id, index === 1_000 ? awkward : { rankeeId: 7 })));
  const csv = await home.here(['history', 'export']);
  const [heading = [], ...records] = parseCsv(csv.stdout);
  expect([...heading].sort()).toEqual(
    [...allFields.filter((name) => !listsOfObjects.includes(name)), ...nameColumns].sort(),
  );
  expect(records.map(([id]) => id)).toEqual(ids.toReversed());
  const newest = Object.fromEntries(heading.map((name, column) => [name, records[0]?.[column]]));
  expect(newest).toMatchObject({
    rankeeName: expect.stringMatching(/^'=cmd\|"x"!A1, "y".z$/u),
    rolesBefore: '1 2',
    rolesBeforeNames: 'Trainee; 2',
    command: "'@x",
    rankerName: "'＝cmd",
    oldRankName: "'＋1",
    prefix: "'－1",
  });
  expect(newest).toMatchObject({ roleId: '', dryRun: 'false', requestedAt: '2026-05-01T00:00:00.000Z' });
  const ofSeven = ids.slice(0, 1_000).reverse();
  const lines = await home.here(['history', 'export', '--format', 'jsonl', '--user', '7']);
  const documents = lines.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(documents.map(({ v, change: { id } }) => [v, id])).toEqual(ofSeven.map((id) => [1, id]));
  const { v, changes } = await home.json<{ v: 1; changes: Array<{ id: string }> }>('history', 'export', '--user', '7');
  expect([v, changes.map(({ id }) => id)]).toEqual([1, ofSeven]);
});

test.concurrent('a suspension and its end are marked in the list and in the documents', async () => {
  using home = new CliHome();
  await home.json('rank', 'suspend', '1001', '--for', '3d', '--reason', 'spam');
  await home.json('rank', 'unsuspend', '1001');
  const { stdout } = await home.here(['history', 'list']);
  expect(stdout).toMatch(/Trainee, lifted early/);
  expect(stdout).toMatch(/, suspended until 20\d\d-\d\d-\d\dT\d\d:\d\dZ/);
  const { changes } = await home.json<{ changes: Array<{ hold: object }> }>('history', 'list');
  expect(changes.map(({ hold }) => hold)).toMatchObject([
    { does: 'lift', kind: null, endsAt: null },
    { does: 'begin', kind: 'suspension', endsAt: expect.any(String) },
  ]);
});

test.concurrent('an empty export has only the heading, or an empty list as JSON', async () => {
  using home = new CliHome();
  expect(parseCsv((await home.here(['history', 'export'])).stdout)).toHaveLength(1);
  expect((await home.here(['history', 'export', '--json'])).json()).toEqual({ v: 1, changes: [] });
});

test.concurrent('an unknown change or key causes exit code 3, and an invalid option 2', async () => {
  using home = new CliHome();
  const unknown = await home.here(['history', 'show', 'chg_nope', '--json']);
  expect(unknown).toMatchObject({ code: 3, stdout: '' });
  expect(unknown.json()).toMatchObject({ v: 1, success: false, code: 'not_found' });
  expect((await home.here(['history', 'list', '--key', 'nobody'])).code).toBe(3);
  for (const args of [
    ['--limit', '0'],
    ['--limit', '1.5'],
    ['--user', 'ad'],
    ['--state', 'lost'],
  ]) {
    expect((await home.here(['history', 'list', ...args])).code).toBe(2);
  }
});

test.concurrent('text from callers can neither forge a row of the list nor control the terminal', async () => {
  using home = new CliHome();
  await keep(
    home,
    change('chg_evil', { rankeeName: 'Eve\n2026 chg_fake applied', message: '\u001b[2J\u202eon', command: '\u0007' }),
  );
  const list = await home.here(['history', 'list', '-q']);
  expect(list.stdout.split('\n')).toHaveLength(3); // the heading, one row, and the empty text after the last newline
  const show = await home.here(['history', 'show', 'chg_evil']);
  for (const control of ['\u001b', '\u0007', '\u202e']) expect(list.stdout + show.stdout).not.toContain(control);
});

test.concurrent('an empty history is an empty list as JSON, and no text on stdout', async () => {
  using home = new CliHome();
  expect(await home.json('history', 'list')).toEqual({ v: 1, changes: [] });
  expect(await home.here(['history', 'list'])).toMatchObject({ code: 0, stdout: '' });
});
