import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { backUp } from '../../../../src/stores/sqlite/files/backup.ts';
import { examineFile } from '../../../../src/stores/sqlite/files/examine.ts';
import { restoreBackup } from '../../../../src/stores/sqlite/files/restore.ts';
import { openSqliteStore } from '../../../../src/stores/sqlite/sqlite-store.ts';
import { operate } from '../../../contracts/store/samples.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { runNode } from '../../../support/node-process.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const clock = new ManualClock();

/** The calls that change the data directory, except SQLite's writes to the unfinished copy. */
const calls = ['rmSync', 'openSync', 'fsyncSync', 'linkSync', 'renameSync'];

/**
 * Restores a backup in a separate process, which copies the data directory before each of `calls`. Returns the copies:
 * each contains the files that a kill at that point would leave behind.
 */
async function snapshots({ dataDir, file }: { dataDir: string; file: string }): Promise<string[]> {
  const folder = tempDir();
  const made = await runNode<number>(`
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    let made = 0;
    for (const name of ${JSON.stringify(calls)}) {
      const original = fs[name];
      fs[name] = (...args) => {
        fs.cpSync(${JSON.stringify(dataDir)}, ${JSON.stringify(folder)} + '/' + made++, { recursive: true });
        return original(...args);
      };
    }
    syncBuiltinESMExports();
    const { restoreBackup } = await import('./src/stores/sqlite/files/restore.ts');
    restoreBackup(${JSON.stringify({ dataDir, file, by: 'cli:ann@host' })}, { now: () => 0 });
    console.log(made);`);
  return Array.from({ length: made }, (_, index) => join(folder, String(index)));
}

/**
 * Creates a data directory in the state that a killed process leaves, with the new plan only in the write-ahead log,
 * and a backup with the old plan.
 */
async function crashedDataDir(): Promise<{ dataDir: string; file: string }> {
  const [dataDir, left] = [tempDir(), tempDir()];
  const file = join(tempDir(), 'backup.db');
  const store = await openSqliteStore({ dataDir, clock });
  backUp({ dataDir, file, mayReplace: false });
  await operate({ store: store, clock }).updateWorkspace({ plan: 'free' }, 'cli:ann@host');
  cpSync(dataDir, left, { recursive: true });
  await store.close();
  return { dataDir: left, file };
}

async function inspect(dataDir: string): Promise<{ plan: string; events: string[] }> {
  const store = await openSqliteStore({ dataDir, clock });
  const { plan } = await store.getWorkspace();
  const events = (await store.listAudit({ limit: 9 })).map(({ action }) => action);
  await store.close();
  expect(examineFile(join(dataDir, 'rankd.db'))).toMatchObject({ damage: [], danglingRows: [] });
  return { plan, events };
}

const before = { plan: 'free', events: ['workspace.plan'] };
const after = { plan: 'top', events: ['database.restore'] };

test('a restore that is killed at any point leaves the old or the new database intact, and can be repeated', async () => {
  const at = await crashedDataDir();
  const moments = await snapshots(at);
  const found = [];
  for (const dataDir of moments) {
    const copy = tempDir();
    cpSync(dataDir, copy, { recursive: true });
    found.push(await inspect(copy));
    restoreBackup({ dataDir, file: at.file, by: 'cli:ann@host' }, clock);
    expect(await inspect(dataDir)).toEqual(after);
    expect(readdirSync(dataDir).filter((name) => /restoring/.test(name))).toEqual([]);
  }
  const swappedAt = found.findIndex(({ plan }) => plan === 'top');
  expect(swappedAt).toBeGreaterThan(5);
  expect(found).toEqual(found.map((_, index) => (index < swappedAt ? before : after)));
});
