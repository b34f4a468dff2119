import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import Database from 'better-sqlite3';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { runCli } from '../../src/cli/program.ts';
import { type AuditRow, chainStart, linkHash } from '../../src/core/audit.ts';
import { engineOf } from '../../src/stores/engine.ts';
import { operate } from '../contracts/store/samples.ts';
import { TerminalIo } from '../support/command-io.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { parseCsv } from '../support/parse-csv.ts';
import { CliHome } from '../support/run-cli.ts';

interface Events {
  v: number;
  events: Array<{
    id: number;
    at: string;
    by: string;
    action: string;
    subject: string;
    detail: Record<string, unknown>;
  }>;
}

test('audit list has all actions of an operator, newest first, with the actor and without secrets', async () => {
  using home = new CliHome();
  const { secret, key } = await home.json<{ secret: string; key: { id: string } }>('key', 'create', 'game');
  await home.here(['whitelist', 'add', '42', '--note', 'lobby']);
  await home.here(['whitelist', 'disable', '42']);
  await home.here(['workspace', 'suspend', '-y']);

  const { v, events } = await home.json<Events>('audit', 'list');
  expect(v).toBe(1);
  expect(events.map(({ action }) => action)).toEqual([
    'workspace.suspend',
    'whitelist.disable',
    'whitelist.add',
    'key.create',
  ]);
  expect(events[2]).toEqual({
    id: expect.any(Number),
    keyName: null,
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    by: expect.stringMatching(/^cli:.+@.+$/),
    action: 'whitelist.add',
    subject: '42',
    detail: { keyId: key.id, note: 'lobby', added: true },
  });
  expect(JSON.stringify(events)).not.toContain(secret);
});

test('the actions of a key are listed under its name', async () => {
  using home = new CliHome();
  const secret = await home.createKey('lobby');
  await using daemon = await DaemonHere.start(home);
  expect((await daemon.rank(secret)).status).toBe(200);
  const list = ['audit', 'list', '--action', 'rank.applied'];
  expect((await home.here(list)).stdout).toMatch(/ key:lobby +rank\.applied /);
  expect(await home.json<Events>(...list)).toMatchObject({
    events: [{ by: expect.stringMatching(/^key:key_/), keyName: 'lobby' }],
  });
});

test('the list can be limited by number and by age', async () => {
  using home = new CliHome();
  await home.here(['key', 'create', 'game']);
  await home.here(['whitelist', 'add', '1', '2', '3']);
  const newest = await home.here(['audit', 'list', '--limit', '2']);
  expect(newest.stdout.trimEnd().split('\n')).toHaveLength(3);
  expect(newest.stderr).toContain('--limit');
  expect((await home.json<Events>('audit', 'list', '--since', '1h')).events).toHaveLength(4);
  expect(await home.json('audit', 'list', '--since', '0s')).toEqual({ v: 1, events: [] });
  expect(await home.json('audit', 'list', '--until', '2020-01-01')).toEqual({ v: 1, events: [] });
  expect((await home.json<Events>('audit', 'list', '--since', '2020-01-01T00:00Z')).events).toHaveLength(4);
  for (const when of ['yesterday', '2026-05-01T18:00', '2026-13-01', '5']) {
    expect((await home.here(['audit', 'list', '--since', when])).code, when).toBe(2);
  }
});

test.concurrent('the list can be filtered by actor, action and key', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'game');
  const { key } = await home.json<{ key: { id: string } }>('key', 'create', 'other');
  await home.json('whitelist', 'add', '7', '--key', 'other');
  const found = async (...args: string[]) =>
    (await home.json<Events>('audit', 'list', ...args)).events.map(({ action, subject }) => `${action} ${subject}`);
  expect(await found('--action', 'key', '--key', 'other')).toEqual([`key.create ${key.id}`]);
  expect(await found('--key', 'other')).toEqual(['whitelist.add 7', `key.create ${key.id}`]);
  expect(await found('--subject', '7')).toEqual(['whitelist.add 7']);
  expect(await found('--by', 'daemon')).toEqual([]);
  expect(await found('--by', 'cli')).toHaveLength(3);
  expect((await home.here(['audit', 'list', '--key', 'nobody'])).code).toBe(3);
});

test.concurrent('the CSV has one record for each event, and no cell that a spreadsheet would run as a formula', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'game');
  const notes = ['=1+1', '+1', '-1', '@x', '\tx', 'a "quoted", note\nin two lines'];
  const store = await engineOf({ dataDir: home.dataDir, clock: systemClock }).openStore();
  for (const note of notes)
    await operate({ store }).appendAudit({
      by: 'cli:a@b',
      action: 'whitelist.add',
      subject: '1',
      detail: { note },
    });
  await store.close();
  inDatabase(
    home,
    "DROP TRIGGER audit_is_never_edited; UPDATE audit_events SET subject = '=HYPERLINK(1)', done_by = '-1' WHERE id = 2",
  );
  const { stdout, code } = await home.here(['audit', 'list', '--export', 'csv']);
  expect(code).toBe(0);
  const [heading, ...records] = parseCsv(stdout);
  expect(heading).toEqual(['id', 'at', 'by', 'action', 'subject', 'detail']);
  expect(records.map(([id]) => id)).toEqual(['7', '6', '5', '4', '3', '2', '1']);
  expect(records.map((record) => JSON.parse(record[5] ?? '').note).slice(0, 6)).toEqual(notes.toReversed());
  expect(records[5]?.slice(2, 5)).toEqual(["'-1", 'whitelist.add', "'=HYPERLINK(1)"]);
  for (const cell of records.flat()) expect(cell).not.toMatch(/^[=+\-@\t\r]/);
  expect(parseCsv((await home.here(['audit', 'list', '--export', 'csv', '--limit', '2'])).stdout)).toHaveLength(3);
  expect((await home.here(['audit', 'list', '--export', 'csv', '--follow'])).code).toBe(2);
});

test.concurrent('follow prints existing events, then new ones, one JSON document per line, and exits with 0 on SIGINT', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'game');
  await home.json('whitelist', 'add', '1', '2');
  const following = startCli(home, 'audit', 'list', '--follow', '--action', 'whitelist', '--json');
  const subjects = following.lines.map((line) => JSON.parse(line).event.subject);
  expect(await subjects.take(2)).toEqual(['1', '2']);
  await home.json('key', 'create', 'other');
  await home.json('whitelist', 'add', '3', '--key', 'other');
  expect(await subjects.take(1)).toEqual(['3']);
  following.process.kill('SIGINT');
  expect(await following.exitCode).toBe(0);
});

test.concurrent('follow ends when its reader closes the pipe', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'game');
  const following = startCli(home, 'audit', 'list', '--follow');
  await following.lines.take(1);
  following.process.stdout.destroy();
  await home.json('key', 'create', 'other');
  expect(await following.exitCode).toBe(0);
});

test.concurrent('as text, follow prints one line per event, without terminal control characters', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'game');
  await home.json('whitelist', 'add', '1', '--note', 'a\u009bb\u202ec');
  const io = new TerminalIo(home);
  const exited = runCli(['audit', 'list', '--follow', '--limit', '1'], io);
  await expect.poll(() => io.out).toMatch(/whitelist\.add {2}1 {2}\{.*\}\n$/);
  io.stop();
  expect(await exited).toBe(0);
  expect(io.out).toMatch(/^[^\n\u009b\u202e]+\n$/);
});

test.concurrent('verify accepts an unchanged audit, and any head hash that it printed earlier', async () => {
  using home = new CliHome();
  const empty = await home.json('audit', 'verify');
  expect(empty).toMatchObject({ v: 1, intact: true, events: 0, headId: 0 });
  await home.json('key', 'create', 'game');
  const { head } = await home.json<{ head: string }>('audit', 'verify');
  await home.json('key', 'revoke', 'game', '-y');
  const text = await home.here(['audit', 'verify', '--head', head.toUpperCase()]);
  expect(text.code).toBe(0);
  expect(text.stdout).toMatch(/^ok: 2 events.*\nthe given head is in the chain.*\nhead: [\da-f]{64} \(event #2\)\n$/);
  expect((await home.here(['audit', 'verify', '--head', 'abc'])).code).toBe(2);
});

test.concurrent('verify exits with 5 and names an event that was edited', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'game');
  inDatabase(home, "DROP TRIGGER audit_is_never_edited; UPDATE audit_events SET done_by = 'cli:eve@host'");
  const result = await home.here(['audit', 'verify', '--json']);
  expect(result.code).toBe(5);
  expect(result.json()).toMatchObject({ v: 1, intact: false, breakCount: 1, breaks: [{ kind: 'changed', id: 1 }] });
  const text = await home.here(['audit', 'verify', '--head', 'ab'.repeat(32)]);
  expect(text.stdout).toMatch(/^BROKEN in 1 place\nevent #1 was changed.*\nNOT FOUND: .+\nhead: /);
});

test.concurrent('with audit.head_file, commands and the daemon record each head, and a rewritten audit is detected', async () => {
  using home = new CliHome();
  const file = home.path('audit.heads');
  writeFileSync(home.path('rankd.yaml'), 'audit: { head_file: audit.heads }\n');
  const lines = () => readFileSync(file, 'utf8').trimEnd().split('\n');
  await home.json('key', 'create', 'game'); // no daemon is running, so the command records the head
  await home.json('rank', 'set', '1001', '20');
  expect(lines().map((line) => line.replace(/^\S+ (\d+) [\da-f]{64}$/, '$1'))).toEqual(['1', '2', '3']);
  await using daemon = await DaemonHere.start(home);
  await home.json('whitelist', 'add', '7'); // the running daemon records the head
  await vi.waitUntil(() => lines().some((line) => /^\S+Z 4 [\da-f]{64}$/.test(line)), { timeout: 20_000 });
  await daemon.stop();
  const verify = (...args: string[]) => home.here(['audit', 'verify', ...args]);
  expect(await verify('--head-file', file)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('recorded heads: 4 in the chain'),
  });
  rewriteAudit(home);
  expect((await verify()).code).toBe(0);
  const { code, stdout } = await verify('--head-file', file);
  expect(code).toBe(5);
  expect(stdout).toMatch(/^BROKEN in 4 places\nevent #1 is not the one whose hash was recorded/);
  expect(await verify('--head-file', home.path('rankd.yaml'))).toMatchObject({ code: 2 });
  expect(await verify('--head-file', 'nowhere')).toMatchObject({ code: 2 });
});

test.concurrent('an unwritable head file prevents the start of a daemon, and causes a warning in a command', async () => {
  using home = new CliHome();
  const env = { RANKD_AUDIT_HEAD_FILE: home.path('no/folder') };
  const missing = /The folder .*no does not exist\./;
  const made = await home.here(['key', 'create', 'game'], { env });
  expect(made).toMatchObject({ code: 0, stderr: expect.stringMatching(missing) });
  await expect(DaemonHere.start(home, { env })).rejects.toThrow(missing);
});

/** Acts as an attacker who changes the actor in every event and recomputes the whole chain. */
function rewriteAudit({ dataDir }: CliHome): void {
  const database = new Database(join(dataDir, 'rankd.db'));
  database.exec('DROP TRIGGER audit_is_never_edited');
  const rows = database
    .prepare('SELECT id, at, done_by AS "by", action, subject, detail FROM audit_events ORDER BY id')
    .all() as Array<Omit<AuditRow, 'hash'>>;
  let { hash } = chainStart;
  for (const row of rows) {
    hash = linkHash(hash, { ...row, by: 'cli:bob@host' });
    database
      .prepare("UPDATE audit_events SET done_by = 'cli:bob@host', hash = ? WHERE id = ?")
      .run(Buffer.from(hash, 'hex'), row.id);
  }
  database.close();
}

/** Acts as an attacker who can write to the database file. */
function inDatabase({ dataDir }: CliHome, sql: string): void {
  const database = new Database(join(dataDir, 'rankd.db'));
  database.exec(sql);
  database.close();
}

function startCli(home: CliHome, ...args: string[]) {
  const child = home.start(args);
  const exitCode = once(child, 'exit').then(([code]) => code);
  return {
    process: child,
    exitCode,
    lines: new Lines(createInterface({ input: child.stdout })[Symbol.asyncIterator]()),
  };
}

class Lines<T = string> {
  readonly #next: () => Promise<T>;

  constructor(lines: { next(): Promise<IteratorResult<T>> } | (() => Promise<T>)) {
    this.#next = typeof lines === 'function' ? lines : async () => (await lines.next()).value;
  }

  map<Other>(convert: (line: T) => Other): Lines<Other> {
    return new Lines(async () => convert(await this.#next()));
  }

  async take(count: number): Promise<T[]> {
    const taken: T[] = [];
    while (taken.length < count) taken.push(await this.#next());
    return taken;
  }
}
