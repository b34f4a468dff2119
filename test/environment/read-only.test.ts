import { spawnSync } from 'node:child_process';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { binary, CliHome } from '../support/run-cli.ts';

/**
 * A command that runs a program with private mounts, which disappear when the program ends. It needs root, at least in
 * a user namespace.
 */
let withPrivateMounts = '';
beforeAll(() => {
  const candidates = ['unshare -m', 'unshare -Urm', 'sudo -n unshare -m'];
  withPrivateMounts =
    candidates.find((candidate) => spawnSync('bash', ['-c', `${candidate} mount -t tmpfs none /mnt`]).status === 0) ??
    'unshare -m';
});

/**
 * Copies the data directory to a read-only file system, and runs the commands there. Resolves with their exit codes and
 * output.
 */
async function onReadOnly(home: CliHome, lines: string[]) {
  const mounted = join(home.folder, 'mounted');
  mkdirSync(mounted);
  const run = (line: string) =>
    `echo "== ${line}"; '${process.execPath}' '${binary}' --data-dir '${mounted}' ${line} 2>&1; echo "== $?"`;
  const script = [
    `set -e; mount -t tmpfs none '${mounted}'; cp -a '${home.dataDir}/.' '${mounted}'; chmod 700 '${mounted}'`,
    `mount -o remount,ro '${mounted}'; set +e; cd '${home.cwd}'`,
    ...lines.map(run),
  ].join('\n');
  const { stdout, stderr } = await home.shell(`${withPrivateMounts} bash -c '${script.replaceAll("'", `'\\''`)}'`);
  const answers = [...stdout.matchAll(/^== (.+)\n([\s\S]*?)^== (\d+)$/gm)].map(([, line, text = '', code]) => {
    return [line, { code: Number(code), text: text.replaceAll(mounted, 'DIR') }] as const;
  });
  expect(answers, stderr).toHaveLength(lines.length);
  return new Map(answers);
}

async function createHome(): Promise<CliHome> {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  await home.createKey('rescued');
  return home;
}

const reading = [
  'key list',
  'audit verify',
  'history list',
  'db check',
  'backup copy.db',
  'store copy --from "$OLDPWD" --to new',
];

test('on a read-only file system, data can be read, backed up and copied, and commands that write all get the same message', async () => {
  const home = await createHome();
  const mounted = join(home.folder, 'mounted');
  const lines = reading.map((line) => line.replace('"$OLDPWD"', mounted));
  const writing = ['key create another', 'serve --port 0', 'rank set 1001 20', 'db migrate', 'db migrate --dry-run'];
  const answers = await onReadOnly(home, [...lines, ...writing, 'backup -q - > piped.db', 'doctor --offline']);
  for (const line of [...lines, 'backup -q - > piped.db'])
    expect({ line, ...answers.get(line) }).toMatchObject({ line, code: 0 });
  expect(answers.get('key list')?.text).toContain('rescued');
  for (const line of writing) {
    expect({ line, ...answers.get(line) }).toMatchObject({ line, code: 77 });
    expect(answers.get(line)?.text).toContain(`error: The data directory DIR is on a read-only file system.
try: mount it read-write, or copy DIR to a writable disk and choose the copy with --data-dir
`);
  }
  expect(answers.get('doctor --offline')).toMatchObject({
    code: 5,
    text: expect.stringMatching(/^FAIL +data +DIR is on a read-only file system$/m),
  });
  for (const file of ['copy.db', 'piped.db']) expect((await home.here(['restore', '--dry-run', file])).code).toBe(0);
  expect((await home.here(['key', 'list', '-q'], { dataDir: home.path('new') })).stdout).toContain('rescued');
});

test('on a read-only file system, data that is only in the write-ahead log is also read', async () => {
  const home = await createHome();
  const open = new Database(join(home.dataDir, 'rankd.db'));
  onTestFinished(() => void open.close());
  open.prepare('SELECT * FROM keys').all(); // while the database is open, its write-ahead log exists
  await home.json('key', 'create', 'latest');
  expect(statSync(join(home.dataDir, 'rankd.db-wal')).size).toBeGreaterThan(0);
  const answers = await onReadOnly(home, ['key list', 'backup copy.db']);
  expect(answers.get('key list')?.text).toContain('latest');
  expect(answers.get('backup copy.db')?.code).toBe(0);
  expect((await home.here(['restore', '--dry-run', 'copy.db'])).stdout).toMatch(/^keys +2$/m);
});
