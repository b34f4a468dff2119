import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { engineOf } from '../../src/stores/engine.ts';
import { ManualClock } from './manual-clock.ts';
import { TempDir } from './temp-dir.ts';

let template: Promise<TempDir> | undefined;

/**
 * Creates a directory with a copy of an empty, migrated database. Copying it is five times as fast as running all
 * migrations.
 */
export async function freshDataDir(): Promise<TempDir> {
  template ??= makeTemplate();
  const dir = new TempDir();
  copyFileSync(join((await template).path, 'rankd.db'), join(dir.path, 'rankd.db'));
  return dir;
}

async function makeTemplate(): Promise<TempDir> {
  const dir = new TempDir();
  const store = await engineOf({ dataDir: dir.path, clock: new ManualClock() }).openStore();
  await store.close();
  process.once('exit', () => dir[Symbol.dispose]());
  return dir;
}
