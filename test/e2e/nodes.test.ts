import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { newWebhookSecret } from '../../src/core/webhooks/webhook.ts';
import { openPostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { recoverLateWrite } from '../../src/usecases/change/carry-out.ts';
import { recordOutcome } from '../../src/usecases/change/change-record.ts';
import type { PlatformTrust } from '../../src/usecases/change/platform-trust.ts';
import { applied, begin, newChange, record } from '../contracts/store/samples.ts';
import { DaemonProcess } from '../support/daemon-process.ts';
import { createPostgresDatabase, type PostgresDatabase } from '../support/postgres-database.ts';
import { CliHome } from '../support/run-cli.ts';
import { startWebhookSink } from '../support/webhook-sink.ts';

/** `east` and `west` are machines with a daemon each; `desk` has only the store's URL. */
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
  });

  afterAll(async () => {
    for (const daemon of Object.values(daemons)) await daemon[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
    for (const home of Object.values(homes)) home[Symbol.dispose]();
  });

  test('on any machine, status shows each node and how the nodes differ', async () => {
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
    expect(shown).toMatch(/running, 2 of 2 nodes serving/);
    expect(shown).toMatch(/policy\.cooldown\s+east \| west/);
    const local = await homes.east.here(['status', '--json']);
    expect(local.json()).toMatchObject({ status: { pid: daemons.east.process.pid, nodes: [{}, {}] } });
    expect((await homes.desk.here(['health'], { env: { RANKD_STORE_URL: database.url } })).code).toBe(69);
  });

  test('status reports clocks that differ from the server’s, and members who may have wrong roles after a late write', async () => {
    const store = await openPostgresStore({ address: database.address, clock: systemClock });
    const identity = { version: '1', url: 'http://far:1', group: 'SIMULATED', isDraining: false, uptimeSeconds: 1 };
    const rest = { requestsInFlight: 0, callsWaiting: 0, budget: [], credentialProblem: null, settings: {} };
    const noHandlers = { onNodesChanged: () => undefined, carryOut: async () => undefined };
    await store.nodes?.showNode({
      ...{ name: 'far', status: () => ({ ...identity, ...rest, serverAheadMs: -5_000 }) },
      ...noHandlers,
    });
    const change = newChange();
    await begin(store, change);
    await recordOutcome({ store, clock: systemClock }, change.id, applied);
    await record(store, newChange({ state: 'applied', finishedAt: Date.now() }));
    const clock = { ...systemClock, now: () => Date.now(), monotonic: () => 0, sleep: async () => undefined };
    const trust = { reportLateWrite: () => undefined } as unknown as PlatformTrust;
    await recoverLateWrite({ store, clock, trust }, change, () => 0);
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
    expect(doctor.stdout).toMatch(/the daemons differ in[\s\S]*the clock of far is 5 s ahead of the server's/);
    await record(store, newChange({ state: 'applied', finishedAt: Date.now() + 1 }));
    await store.close();
    const after = (await atDesk('status')).stdout;
    expect(after).not.toContain('late write');
    expect(after).not.toContain("server's");
  });

  test('reload makes every node read its own file, and exits with the code of the worst outcome', async () => {
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
      stdout: expect.stringMatching(/^west: loaded from .*\n[\s\S]*policy\.cooldown/),
    });
    expect(one.stdout).not.toContain('east');
    expect((await atDesk('reload', '--node', 'north')).stderr).toMatch(
      /named north[\s\S]*daemons on this database: east, west/,
    );
    const status = (await atDesk('status', '--json')).json<{ status: { differences: unknown[] } }>();
    await expect
      .poll(async () => (await atDesk('status', '--json')).json<typeof status>().status.differences)
      .toEqual([]);
    const { events } = (await atDesk('audit', 'list', '--action', 'config.reload', '--json')).json<{
      events: unknown[];
    }>();
    expect(events).toMatchObject([{ by: expect.stringMatching(/^cli:/) }, { by: expect.stringMatching(/^cli:/) }]);
  });

  test('a declared key is valid as long as one node declares it, which reload reports; the last node’s reload or end revokes it', async () => {
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
    const reloaded = await atDesk('reload', '--node', 'east');
    expect(reloaded.stderr).toContain(
      'warning: east: the key "game" stays in force, because it is still declared by west',
    );
    expect(await revoked()).toMatchObject({ game: 'active' });
    write('east', key('other'));
    expect((await atDesk('reload', '--node', 'east')).code).toBe(0);
    expect(await daemons.west.stop()).toBe(0);
    await expect.poll(revoked).toMatchObject({ game: 'revoked', other: 'active' });
    write('west', '');
    daemons.west = await start('west');
    expect(await revoked()).toMatchObject({ other: 'active' });
  });

  test('a declared webhook exists as long as one node declares it, with the newest declaration and that node’s files', async () => {
    await using first = await startWebhookSink();
    await using second = await startWebhookSink();
    const secret = newWebhookSecret();
    const target = '{name: log, url_file: log.url, secret_file: log.secret, events: [key.created]}';
    const declare = async (name: 'east' | 'west', url?: string) => {
      for (const [file, text] of [['log.url', url ?? ''] as const, ['log.secret', secret] as const])
        writeFileSync(homes[name].path(file), text, { mode: 0o600 });
      write(name, `webhooks: {allow_private: [127.0.0.1], targets: [${url === undefined ? '' : target}]}`);
      const { code, stderr } = await atDesk('reload', '--node', name);
      expect(code, stderr).toBe(0);
      return stderr;
    };
    const listed = async () => {
      const { webhooks } = (await atDesk('webhook', 'list', '--json')).json<{ webhooks: Array<{ target: string }> }>();
      return webhooks.map((webhook) => webhook.target);
    };
    const shown = (sink: typeof first) => [`http://127.0.0.1:${sink.port}/***`];
    const received = () => [first.received.length, second.received.length];
    const differing = async () => {
      type Shown = { status: { differences: Array<{ setting: string }> } };
      return (await atDesk('status', '--json')).json<Shown>().status.differences.map(({ setting }) => setting);
    };
    const differs = (by: string, applied: string) =>
      `the webhook "log" is declared differently by ${by}; ${applied} daemon's declaration applies`;
    expect(await declare('east', first.url)).not.toContain('log');
    expect(await declare('west', second.url)).toContain(`west: ${differs('east', 'this')}`);
    expect(await declare('east', first.url)).toContain(`east: ${differs('west', 'another')}`);
    expect(await listed()).toEqual(shown(second));
    expect((await atDesk('key', 'create', 'told-one')).code).toBe(0);
    await expect.poll(received, { timeout: 20_000 }).toEqual([0, 1]);
    // the two configurations differ only in the webhook's address
    await expect.poll(differing, { timeout: 20_000 }).toEqual(['webhooks.targets']);
    expect(await declare('west')).toContain(
      'west: the webhook "log" stays in force, because it is still declared by east',
    );
    expect(await listed()).toEqual(shown(first));
    expect((await atDesk('key', 'create', 'told-two')).code).toBe(0);
    await expect.poll(received, { timeout: 20_000 }).toEqual([1, 1]);
    await declare('west', first.url);
    await declare('east');
    expect(await listed()).toEqual(shown(first));
    expect(await daemons.west.stop()).toBe(0);
    await expect.poll(listed, { timeout: 20_000 }).toEqual([]);
    write('west', '');
    daemons.west = await start('west');
  });

  test('each event of any daemon is delivered once; a second daemon takes over once the first is gone', async () => {
    await using sink = await startWebhookSink();
    for (const name of ['east', 'west'] as const) write(name, 'webhooks: {allow_private: [127.0.0.1]}');
    await atDesk('reload');
    const env = { RANKD_STORE_URL: database.url };
    const added = await homes.east.here(['webhook', 'add', 'sink', '--no-test'], { env, input: sink.url });
    expect(added.code).toBe(0);
    const { secret } = (await atDesk('key', 'create', 'ranks', '--json')).json<{ secret: string }>();
    await atDesk('whitelist', 'add', '1', '--key', 'ranks');
    const rankAt = async (name: 'east' | 'west', newRankId: number) => {
      const { status, text } = await daemons[name].rank(secret, { newRankId });
      expect(status, text).toBe(200);
    };
    const changes = () => sink.received.filter(({ event }) => event.type === 'rank.changed').length;
    const sequences = () => sink.received.map(({ event }) => event.data.sequence);
    for (const name of ['east', 'west'] as const) await rankAt(name, 20); // each daemon has a separate simulated group
    await expect.poll(changes).toBe(2);
    const [task] = await sql(
      `SELECT name FROM rankd.node_tasks JOIN rankd.nodes ON nodes.id = node_tasks.node WHERE task = 'webhooks'`,
    );
    const inCharge: 'east' | 'west' = task.name;
    const other = inCharge === 'east' ? 'west' : 'east';
    expect(await daemons[inCharge].stop()).toBe(0);
    await rankAt(other, 50);
    await expect.poll(changes).toBe(3);
    expect(new Set(sequences()).size).toBe(sequences().length);
    await atDesk('webhook', 'remove', 'sink', '-y');
    daemons[inCharge] = await start(inCharge);
  });

  test('each daemon that knew of events lost in a failover reports them in its log and in the audit', async () => {
    for (const name of ['lost', 'lost-too']) expect((await atDesk('key', 'create', name)).code).toBe(0);
    const [{ beats }] = await sql('SELECT sum(beat)::int AS beats FROM rankd.nodes WHERE ended_by IS NULL');
    const since = async () =>
      (await sql('SELECT sum(beat)::int AS beats FROM rankd.nodes WHERE ended_by IS NULL'))[0].beats - beats;
    await expect.poll(since).toBeGreaterThan(5); // by now, both daemons have seen the newest event
    const [{ id }] = await sql('SELECT last_id AS id FROM rankd.audit_head');
    await sql(`SET session_replication_role = replica;
      DELETE FROM rankd.audit_events WHERE id > ${id} - 1;
      UPDATE rankd.audit_head SET (last_id, hash) = (SELECT id, hash FROM rankd.audit_events ORDER BY id DESC LIMIT 1)`);
    const lossEvents = async () => {
      const { events } = (await atDesk('audit', 'list', '--action', 'store.lost', '--json')).json<{
        events: Array<{ by: string; detail: object }>;
      }>();
      return events.map(({ by, detail }) => ({ by, detail })).sort((a, b) => a.by.localeCompare(b.by));
    };
    await expect.poll(lossEvents).toMatchObject([{ by: 'daemon:east' }, { by: 'daemon:west' }]);
    expect((await lossEvents())[0]?.detail).toMatchObject({ toId: Number(id) });
    for (const { log } of Object.values(daemons)) {
      expect(log).toContain(`PostgreSQL has lost the latest confirmed writes: audit event ${id},`);
      expect(log).toContain('see docs/several-daemons.md');
    }
    expect((await atDesk('audit', 'verify')).code).toBe(0);
  });

  test('a daemon whose database a later rankd has migrated finishes running requests, and exits with 78', async () => {
    const ended = [daemons.east, daemons.west].map(async ({ process }) => (await once(process, 'exit'))[0]);
    await sql(`INSERT INTO rankd.schema_steps VALUES (9, 9, '3.0.0', 0)`);
    expect(await Promise.all(ended)).toEqual([78, 78]);
    expect(daemons.west.log).toContain('which now requires schema 9');
    await sql('DELETE FROM rankd.schema_steps WHERE version = 9');
    [daemons.east, daemons.west] = await Promise.all([start('east'), start('west')]);
  });

  test('reload exits with 69 without a daemon, and --node is a usage error on a data directory', async () => {
    await using empty = await createPostgresDatabase();
    const env = { RANKD_STORE_URL: empty.url };
    expect((await homes.desk.here(['reload'], { env })).code).toBe(69);
    const local = await homes.desk.here(['reload', '--node', 'east']);
    expect(local).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('this data directory has only one daemon'),
    });
  });

  test('status omits a stopped node, shows that a silent one has no lease, and exits with 69 without a serving node', async () => {
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
    const logout = atDesk('dashboard', 'logout', '--json');
    await expect
      .poll(() => sql(`SELECT seq FROM rankd.node_commands WHERE does = 'logout' AND outcome IS NULL`))
      .toHaveLength(1);
    await sql(`UPDATE rankd.nodes SET ended_by = 'node_x' WHERE name = 'east'`);
    expect(await logout).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('east; sessions there may continue'),
    });
    expect((await nodes()).map(({ name, state }) => [name, state])).toEqual([['east', 'ended']]);
    [daemons.east, daemons.west] = await Promise.all([start('east'), start('west')]);
    expect((await nodes()).map(({ name, state }) => [name, state])).toEqual([
      ['east', 'serving'],
      ['west', 'serving'],
    ]);
  });
});
