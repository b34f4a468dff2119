import { execFileSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  lchownSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { Connection } from '../../src/stores/sqlite/engine/connection.ts';
import { migrations } from '../../src/stores/sqlite/schema/migrations.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { binary, CliHome } from '../support/run-cli.ts';
import { runUnprivileged } from '../support/run-unprivileged.ts';

const schema = migrations.length;

let home: CliHome;
beforeEach(async () => {
  home = new CliHome();
  await home.createKey();
});
afterEach(() => home[Symbol.dispose]());

test('status shows the time of the last successful backup, to a file or a pipe', async () => {
  const shown = async () => {
    const { stdout } = await home.here(['status']);
    const { status } = (await home.here(['status', '--json'])).json<{ status: { lastBackupAt: string | null } }>();
    return [/^last backup +(.*)$/m.exec(stdout)?.[1], status.lastBackupAt];
  };
  expect(await shown()).toEqual(['none by rankd', null]);
  expect((await home.here(['backup', 'no-folder/copy.db'])).code).not.toBe(0);
  expect(await shown()).toEqual(['none by rankd', null]);
  for (const target of ['copy.db', '-']) {
    const begun = Date.now();
    expect((await home.here(['backup', target])).code).toBe(0);
    const [text, at] = await shown();
    expect(text).toMatch(/ago|^\d{4}-/);
    expect(Date.parse(String(at))).toBeGreaterThanOrEqual(begun);
  }
});

const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8);
const contentOf = (file: string) => {
  const db = new Database(file, { readonly: true });
  try {
    return { keys: db.prepare('SELECT name FROM keys').pluck().all(), check: db.pragma('integrity_check') };
  } finally {
    db.close();
  }
};

test('backup describes the copy, which is private and complete', async () => {
  const { code, stdout, stderr } = await home.here(['backup', 'copy.db']);
  const file = home.path('copy.db');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toBe(
    `FIELD         VALUE
file          ${file}
bytes         ${statSync(file).size}
schema        ${schema}
keys          1
whitelist     1
changes       0
audit events  2
`,
  );
  expect(modeOf(file)).toBe('600');
  expect(contentOf(file)).toEqual({ keys: ['game'], check: [{ integrity_check: 'ok' }] });
  expect(readdirSync(home.cwd)).toEqual(['copy.db']);
});

test('backup --json prints one document and does not change the data directory', async () => {
  const before = readdirSync(home.dataDir);
  const { code, stdout, stderr } = await home.here(['backup', 'copy.db', '--json']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({
    v: 1,
    backup: {
      file: home.path('copy.db'),
      bytes: statSync(home.path('copy.db')).size,
      schema,
      keys: 1,
      whitelist: 1,
      changes: 0,
      auditEvents: 2,
    },
  });
  expect(readdirSync(home.dataDir)).toEqual(before);
});

test('a copy made while a daemon is changing ranks is a snapshot of the database', async () => {
  await using daemon = await DaemonHere.start(home);
  const secret = await home.createKey('busy');
  let isBusy = true;
  const load = (async () => {
    for (let rank = 10; isBusy; rank = rank === 10 ? 20 : 10) {
      expect((await daemon.rank(secret, { newRankId: rank })).status).toBe(200);
    }
  })();
  for (const name of ['one.db', 'two.db', 'three.db']) {
    expect((await home.here(['backup', name])).code).toBe(0);
    expect(contentOf(home.path(name)).check).toEqual([{ integrity_check: 'ok' }]);
  }
  isBusy = false;
  await load;
  const stderr = (await home.here(['backup', 'four.db'])).stderr;
  expect(stderr).toBe('The simulated group stands in for Roblox and is not part of the backup.\n');
  await daemon.stop();
  const env = { RANKD_GROUP_ID: '700', RANKD_PLATFORM_API_KEY: 'a-key' };
  expect((await home.here(['backup', 'five.db'], { env })).stderr).toBe(''); // a real group is not mentioned
});

test('an existing file is replaced only with --force', async () => {
  writeFileSync(home.path('copy.db'), 'mine');
  expect(await home.here(['backup', 'copy.db'])).toMatchObject({
    code: 4,
    stdout: '',
    stderr: `error: ${home.path('copy.db')} already exists; rankd did not change it.
try: choose a different name, or replace it with --force
`,
  });
  expect(readFileSync(home.path('copy.db'), 'utf8')).toBe('mine');
  expect((await home.here(['backup', '--force', 'copy.db'])).code).toBe(0);
  expect(contentOf(home.path('copy.db')).keys).toEqual(['game']);
});

test.each([[], ['--force']])(
  'a target that is neither a regular file nor a link to one is never replaced (%j)',
  async (...options) => {
    execFileSync('mkfifo', [home.path('pipe')]);
    symlinkSync('/dev/null', home.path('link'));
    for (const name of ['pipe', 'link']) {
      expect(await home.here(['backup', ...options, name])).toMatchObject({
        code: 2,
        stdout: '',
        stderr: `error: ${home.path(name)} is neither a file nor a folder; a backup can't replace it.
try: choose a different name; \`rankd backup -\` writes to standard output
`,
      });
    }
    expect(statSync(home.path('pipe')).isFIFO()).toBe(true);
    expect(readlinkSync(home.path('link'))).toBe('/dev/null');
  },
);

test('a backup to a link replaces the target of the link, unless that is the database', async () => {
  mkdirSync(home.path('disk'));
  writeFileSync(home.path('disk/copy.db'), 'mine');
  symlinkSync('disk/copy.db', home.path('link.db'));
  expect((await home.here(['backup', 'link.db'])).code).toBe(4);
  expect((await home.here(['backup', '--force', 'link.db'])).code).toBe(0);
  expect(readlinkSync(home.path('link.db'))).toBe('disk/copy.db');
  expect(contentOf(home.path('disk/copy.db')).keys).toEqual(['game']);

  const database = join(home.dataDir, 'rankd.db');
  const before = readFileSync(database);
  symlinkSync(database, home.path('database.db'));
  const result = await home.here(['backup', '--force', 'database.db']);
  expect(result).toMatchObject({ code: 2, stdout: '' });
  expect(result.stderr).toContain('a backup would overwrite it');
  expect(readFileSync(database).equals(before)).toBe(true);
});

test.runIf(process.getuid?.() === 0)('another user’s link is not followed, so its target is unchanged', async () => {
  writeFileSync(home.path('mine'), 'mine');
  mkdirSync(home.path('shared'), { mode: 0o777 });
  symlinkSync(home.path('mine'), home.path('shared/copy.db'));
  lchownSync(home.path('shared/copy.db'), 65_534, 65_534);
  symlinkSync('shared/copy.db', home.path('own.db'));
  for (const name of ['shared/copy.db', 'own.db']) {
    expect(await home.here(['backup', '--force', name])).toMatchObject({
      code: 77,
      stdout: '',
      stderr: expect.stringContaining(
        'shared/copy.db is a link that belongs to another user (uid 65534), so rankd did not follow it.\ntry: ',
      ),
    });
  }
  expect(readFileSync(home.path('mine'), 'utf8')).toBe('mine');
});

test('a dangling link counts as existing, and only --force replaces it', async () => {
  for (const target of ['missing.db', 'link.db']) {
    symlinkSync(target, home.path('link.db'));
    expect(await home.here(['backup', 'link.db'])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('link.db already exists; rankd did not change it.\ntry: '),
    });
    expect(readlinkSync(home.path('link.db'))).toBe(target);
    expect((await home.here(['backup', '--force', 'link.db'])).code).toBe(0);
    expect(readdirSync(home.cwd)).toEqual(['link.db']);
    expect(contentOf(home.path('link.db')).keys).toEqual(['game']);
    rmSync(home.path('link.db'));
  }
});

test('of two concurrent backups with the same name, one succeeds, and the other fails', async () => {
  const both = await Promise.all([home.run(['backup', 'copy.db']), home.run(['backup', 'copy.db'])]);
  expect(both.map(({ code }) => code).sort()).toEqual([0, 4]);
  expect(contentOf(home.path('copy.db')).keys).toEqual(['game']);
  expect(readdirSync(home.cwd)).toEqual(['copy.db']);
});

test('backup - streams the database from a private unnamed file, and fails if the reader disconnects', async () => {
  const script = `'${process.execPath}' '${binary}' backup - > copy.db`;
  expect(await home.shell(script)).toEqual({
    code: 0,
    stdout: '',
    stderr: expect.stringMatching(/^\d+ bytes were written\.\n$/),
  });
  expect(contentOf(home.path('copy.db'))).toEqual({ keys: ['game'], check: [{ integrity_check: 'ok' }] });
  expect(readdirSync(home.dataDir).filter((name) => name.includes('backup'))).toEqual([]);

  const cut = await home.shell(`set -o pipefail; '${process.execPath}' '${binary}' backup - | head -c 1`);
  expect(cut.code).toBe(69);
  expect(cut.stderr).toMatch(/^error: The backup could not be written completely: .+\ntry: .+\n$/);
});

test('a backup is not written to a terminal', async () => {
  const typescript = home.path('typescript');
  const { code } = await home.shell(
    `script -qec "'${process.execPath}' '${binary}' backup -" '${typescript}' > seen < /dev/null`,
  );
  expect(code).toBe(2);
  const seen = readFileSync(home.path('seen'), 'utf8').replaceAll('\r', '');
  expect(seen).toBe("error: A backup can't be printed to a terminal.\ntry: rankd backup rankd-backup.db\n");
});

test.each([
  { what: 'a missing folder', target: 'none/copy.db', code: 3, says: 'none does not exist' },
  { what: 'a folder without --force', target: 'folder', code: 2, says: 'is a folder' },
  { what: 'a folder with --force', target: '--force folder', code: 2, says: 'is a folder' },
  { what: 'the database itself', target: '--force DATA/rankd.db', code: 2, says: 'a backup would overwrite it' },
  { what: 'the list of clusters', target: '--force DATA/rankd.clusters', code: 2, says: 'a backup would overwrite it' },
  {
    what: 'the simulated group’s file',
    target: '--force DATA/simulated-group-1a2b3c4d.db',
    code: 2,
    says: 'a backup would overwrite it',
  },
])('$what is refused, and nothing is written', async ({ target, code, says }) => {
  mkdirSync(home.path('folder'));
  const before = readFileSync(join(home.dataDir, 'rankd.db'));
  const result = await home.here(['backup', ...target.replace('DATA', home.dataDir).split(' ')]);
  expect(result).toMatchObject({ code, stdout: '' });
  expect(result.stderr).toMatch(/^error: .+\ntry: .+\n$/);
  expect(result.stderr).toContain(says);
  expect(readdirSync(home.cwd)).toEqual(['folder']);
  expect(readdirSync(home.path('folder'))).toEqual([]);
  expect(readFileSync(join(home.dataDir, 'rankd.db')).equals(before)).toBe(true);
});

test.each([0o500, 0o600, 0])(
  'a backup to a folder of mode %o that this user cannot write to exits with 77',
  async (mode) => {
    mkdirSync(home.path('closed'), { mode });
    const result = await runUnprivileged(['backup', home.path('closed/copy.db')], home.dataDir);
    expect(result).toEqual({
      code: 77,
      stdout: '',
      stderr: `error: rankd is not allowed to write ${home.path('closed/copy.db')}.
try: choose a folder that this user can write to, or run rankd as a user that can write to ${home.path('closed')}
`,
    });
  },
);

test('on a full disk, backup exits with 69 and leaves no partial copy', async () => {
  await using _daemon = await DaemonHere.start(home); // creates the database's shared memory file
  const inside = readdirSync(home.dataDir);
  const limited = `prlimit --fsize=65536 '${process.execPath}' '${binary}'`; // smaller than the copy
  for (const target of ['copy.db', '-']) {
    const { code, stdout, stderr } = await home.shell(`${limited} backup ${target}`);
    expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
    expect(stderr).toMatch(/^error: The disk of .+ did not write .+\.\ntry: check the disk of .+\n$/);
  }
  expect(readdirSync(home.cwd)).toEqual([]);
  expect(readdirSync(home.dataDir)).toEqual(inside);
});

test('a damaged database does not become a backup', async () => {
  const file = join(home.dataDir, 'rankd.db');
  const { size } = statSync(file);
  const descriptor = openSync(file, 'r+');
  writeFileSync(descriptor, Buffer.concat([readFileSync(file).subarray(0, 8_192), Buffer.alloc(size - 8_192, 0xff)]));
  closeSync(descriptor);
  const result = await home.here(['backup', 'copy.db']);
  expect(result).toMatchObject({ code: 69, stdout: '' });
  expect(result.stderr).toContain('damaged');
  expect(readdirSync(home.cwd)).toEqual([]);
});

test('a copy that fails its check is removed', async () => {
  const db = new Database(join(home.dataDir, 'rankd.db'));
  db.pragma('foreign_keys = OFF');
  db.exec("INSERT INTO whitelist (key_id, place_id, active, note, added_at) VALUES ('nobody', 1, 1, '', 0)");
  db.close();
  for (const target of ['copy.db', '-']) {
    const result = await home.here(['backup', target]);
    expect(result).toMatchObject({ code: 69, stdout: '' });
    expect(result.stderr).toMatch(
      /^error: The backup failed its integrity check.+ missing row of keys\.\ntry: rankd db check\n$/,
    );
  }
  expect(readdirSync(home.cwd)).toEqual([]);
});

test('a copy that lacks data written before the backup is removed', async () => {
  await home.json('backup', 'earlier.db');
  await home.json('key', 'create', 'later');
  const copying = vi.spyOn(Connection.prototype, 'run').mockImplementation((_sql, { to } = {}) => {
    copyFileSync(home.path('earlier.db'), String(to));
    return 0;
  });
  onTestFinished(() => copying.mockRestore());
  const result = await home.here(['backup', 'copy.db']);
  expect(result).toMatchObject({ code: 69, stdout: '' });
  expect(result.stderr).toContain('it ends before row 2 of keys');
  expect(readdirSync(home.cwd)).toEqual(['earlier.db']);
});

test('without a database, backup exits with 3 and creates none', async () => {
  const dataDir = home.path('empty');
  expect(await home.here(['backup', 'copy.db'], { dataDir })).toMatchObject({
    code: 3,
    stdout: '',
    stderr: `error: There is no rankd database in ${dataDir}.
try: name the data directory with --data-dir, or create a database with \`rankd serve\`
`,
  });
  expect(readdirSync(home.cwd)).toEqual([]);
});

test('a folder that contains only a backup named rankd.db is a complete data directory', async () => {
  await home.json('backup', 'copy.db');
  const dataDir = home.path('elsewhere');
  mkdirSync(dataDir);
  copyFileSync(home.path('copy.db'), join(dataDir, 'rankd.db'));
  const { stdout } = await home.here(['key', 'list', '--json'], { dataDir });
  expect(JSON.parse(stdout)).toMatchObject({ keys: [{ name: 'game' }] });
});
