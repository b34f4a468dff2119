import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { openPostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { keepOutcome } from '../../src/usecases/change/change-outcome.ts';
import { settleLateWrite } from '../../src/usecases/change/late-write.ts';
import type { PlatformTrust } from '../../src/usecases/change/platform-trust.ts';
import { applied, begin, newChange, record } from '../contracts/store/samples.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { createPostgresDatabase, type PostgresDatabase } from '../support/postgres-database.ts';
import { CliHome } from '../support/run-cli.ts';

/** Two daemons on machines of their own that share a database, and a third machine that has the store's URL alone. */
describe('several daemons on one database', () => {
  let database: PostgresDatabase;
  const homes = { east: new CliHome(), west: new CliHome(), desk: new CliHome() };
  const daemons = {} as Record<'east' | 'west', DaemonProcess>;

  const write = (name: 'east' | 'west', rest: string) =>
    writeFileSync(homes[name].path('rankd.yaml'), `store: {url: '${database.url}', node: ${name}}\n${rest}\n`, {
      mode: 0o600,
    });
  const start = (name: 'east' | 'west') => DaemonProcess.start(homes[name]);
  const atDesk = (...args: string[]) => homes.desk.here(args, { env: { RANKD_STORE_URL: database.url } });
  const sql = async (text: string) => {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    const { rows } = await client.query(text);
    await client.end();
    return rows;
  };

  beforeAll(async () => {
    database = await createPostgresDatabase();
    write('east', 'policy: {cooldown: 5s}');
    write('west', 'policy: {cooldown: 9s}');
    [daemons.east, daemons.west] = await Promise.all([start('east'), start('west')]);
  }, 60_000);

  afterAll(async () => {
    for (const daemon of Object.values(daemons)) await daemon[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
    for (const home of Object.values(homes)) home[Symbol.dispose]();
  });

  test('status tells of each node from any machine, and by names what differs between them', async () => {
    const { code, json } = await atDesk('status', '--json');
    expect(code).toBe(0);
    const { status } = json<{ status: { nodes: unknown[]; differences: unknown[] } }>();
    expect(status).toMatchObject({
      state: 'running',
      openChanges: 0,
      nodes: [
        { name: 'east', state: 'serving', url: daemons.east.url, requestsInFlight: 0, callsWaiting: 0 },
        { name: 'west', state: 'serving', url: daemons.west.url, credentialProblem: null },
      ],
      differences: [{ setting: 'policy.cooldown', sides: [['east'], ['west']] }],
    });
    const shown = (await atDesk('status')).stdout;
    expect(shown).toMatch(/running, 2 of 2 nodes serve/);
    expect(shown).toMatch(/policy\.cooldown\s+east \| west/);
    const local = await homes.east.here(['status', '--json']);
    expect(local.json()).toMatchObject({ status: { pid: daemons.east.process.pid, nodes: [{}, {}] } });
    expect((await homes.desk.here(['health'], { env: { RANKD_STORE_URL: database.url } })).code).toBe(69);
  });

  test('status names clocks that are apart from the server’s, and members whom a late write may have left with wrong roles', async () => {
    const store = await openPostgresStore({ address: database.address, clock: systemClock });
    const told = { version: '1', url: 'http://far:1', group: 'SIMULATED', isDraining: false, uptimeSeconds: 1 };
    const rest = { requestsInFlight: 0, callsWaiting: 0, budget: [], credentialProblem: null, settings: {} };
    const deaf = { onOutgrown: () => undefined, onNodesChanged: () => undefined, carryOut: async () => undefined };
    await store.nodes?.showNode({
      ...{ name: 'far', status: () => ({ ...told, ...rest, serverAheadMs: -5_000 }) },
      ...deaf,
    });
    const change = newChange();
    await begin(store, change);
    await keepOutcome({ store, clock: systemClock }, change.id, applied);
    await record(store, newChange({ state: 'applied', finishedAt: Date.now() }));
    const clock = { ...systemClock, now: () => Date.now(), monotonic: () => 0, sleep: async () => undefined };
    const trust = { reportLateWrite: () => undefined } as unknown as PlatformTrust;
    await settleLateWrite({ store, clock, trust }, change, () => 0);
    vi.spyOn(systemClock, 'now').mockImplementation(() => Date.now() - 3_000);
    const [asked, shown] = [await atDesk('status', '--json'), (await atDesk('status')).stdout];
    vi.restoreAllMocks();
    expect(asked.json()).toMatchObject({
      status: {
        nodes: [{ name: 'east' }, { name: 'far', serverAheadMs: -5_000 }, { name: 'west' }],
        lateWrites: [{ changeId: change.id, rankeeId: change.rankeeId }],
      },
    });
    expect(shown).toMatch(/this machine +3 s behind the server's\nfar +5 s ahead of the server's\n/);
    expect(shown).toContain(`of member ${change.rankeeId}: rankd rank show ${change.rankeeId}`);
    const doctor = await atDesk('doctor', '--offline');
    expect(doctor.stdout).toMatch(/they differ in[\s\S]*the clock of far is 5 s ahead of the server's/);
    await record(store, newChange({ state: 'applied', finishedAt: Date.now() + 1 }));
    await store.close();
    const after = (await atDesk('status')).stdout;
    expect(after).not.toContain('late write');
    expect(after).not.toContain("server's");
  });

  test('reload reaches every node, each with its own file; the exit code is that of the worst', async () => {
    write('east', 'policy: {cooldown: 7s}');
    write('west', 'policy: {cooldown: often}');
    const all = await atDesk('reload', '--json');
    expect(all.code).toBe(78);
    expect(all.json()).toMatchObject({
      nodes: [
        { name: 'east', state: 'applied', applied: [{ name: 'policy.cooldown', before: '5s', now: '7s' }] },
        { name: 'west', state: 'refused', code: 'config_invalid', message: expect.stringContaining('policy.cooldown') },
      ],
    });
    write('west', 'policy: {cooldown: 7s}');
    const one = await atDesk('reload', '--node', 'west');
    expect(one).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^west: taken up from .*\n[\s\S]*policy\.cooldown/),
    });
    expect(one.stdout).not.toContain('east');
    expect((await atDesk('reload', '--node', 'north')).stderr).toMatch(/called north[\s\S]*there are: east, west/);
    const status = (await atDesk('status', '--json')).json<{ status: { differences: unknown[] } }>();
    await expect
      .poll(async () => (await atDesk('status', '--json')).json<typeof status>().status.differences)
      .toEqual([]);
    const { events } = (await atDesk('audit', 'list', '--action', 'config.reload', '--json')).json<{
      events: unknown[];
    }>();
    expect(events).toMatchObject([{ by: expect.stringMatching(/^cli:/) }, { by: expect.stringMatching(/^cli:/) }]);
  });

  test('a declared key holds while one node declares it: reload says so, and its last node’s reload or end revokes it', async () => {
    const key = (name: string) =>
      `keys: [{name: ${name}, hash: ${createHash('sha256').update(name).digest('hex')}, whitelist: [1]}]`;
    const revoked = async () => {
      const { keys } = (await atDesk('key', 'list', '--json')).json<{
        keys: Array<{ name: string; state: string }>;
      }>();
      return Object.fromEntries(keys.map(({ name, state }) => [name, state]));
    };
    for (const name of ['east', 'west'] as const) write(name, key('game'));
    expect((await atDesk('reload')).code).toBe(0);
    write('east', '');
    const told = await atDesk('reload', '--node', 'east');
    expect(told.stderr).toContain('warning: east: the key "game" holds on, as it is still declared by west');
    expect(await revoked()).toMatchObject({ game: 'active' });
    write('east', key('other'));
    expect((await atDesk('reload', '--node', 'east')).code).toBe(0);
    expect(await daemons.west.stop()).toBe(0);
    await expect.poll(revoked, { timeout: 10_000 }).toMatchObject({ game: 'revoked', other: 'active' });
    write('west', '');
    daemons.west = await start('west');
    expect(await revoked()).toMatchObject({ other: 'active' });
  });

  test('a daemon whose database a later rankd has changed finishes what runs, and ends with 78', async () => {
    const ended = once(daemons.west.process, 'exit');
    await sql(`INSERT INTO rankd.schema_steps VALUES (9, 9, '3.0.0', 0)`);
    expect((await ended)[0]).toBe(78);
    expect(daemons.west.log).toContain('it takes a rankd that knows schema 9');
    await sql('DELETE FROM rankd.schema_steps WHERE version = 9');
    [daemons.east, daemons.west] = await Promise.all([start('east'), start('west')]);
  });

  test('without a daemon there is nobody to reload', async () => {
    await using empty = await createPostgresDatabase();
    const env = { RANKD_STORE_URL: empty.url };
    expect((await homes.desk.here(['reload'], { env })).code).toBe(69);
    const local = await homes.desk.here(['reload', '--node', 'east']);
    expect(local).toMatchObject({ code: 2, stderr: expect.stringContaining('here is one daemon') });
  });

  test('a node that stops has left, one that is silent has no lease, and where none serves the exit code is 69', async () => {
    expect(await daemons.west.stop()).toBe(0);
    const nodes = async () =>
      (await atDesk('status', '--json')).json<{ status: { nodes: Array<{ name: string; state: string }> } }>().status
        .nodes;
    expect((await nodes()).map(({ name, state }) => [name, state])).toEqual([['east', 'serving']]);
    await daemons.east.stop('SIGKILL');
    await sql('UPDATE rankd.nodes SET beaten_at = beaten_at - 10000 WHERE ended_by IS NULL');
    expect((await nodes()).map(({ name, state }) => [name, state])).toEqual([['east', 'no_lease']]);
    const dead = await atDesk('status');
    expect(dead.code).toBe(69);
    expect(dead.stdout).toMatch(/east\s+NO LEASE/);
    await sql(`UPDATE rankd.nodes SET ended_by = 'node_x' WHERE name = 'east'`);
    expect((await nodes()).map(({ name, state }) => [name, state])).toEqual([['east', 'ended']]);
    [daemons.east, daemons.west] = await Promise.all([start('east'), start('west')]);
    expect((await nodes()).map(({ name, state }) => [name, state])).toEqual([
      ['east', 'serving'],
      ['west', 'serving'],
    ]);
  });
});
