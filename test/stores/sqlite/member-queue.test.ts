import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { tempDir } from '../../support/temp-dir.ts';

test('a position that could not be released is released by the next successful ping', async () => {
  const dataDir = tempDir();
  const open = async () => {
    const store = await openSqliteStore({ dataDir, clock: new ManualClock() });
    onTestFinished(() => store.close());
    return store;
  };
  const [daemon, command] = [await open(), await open()];
  const admin = new Sqlite(join(dataDir, 'rankd.db'));
  onTestFinished(() => void admin.close());
  const position = await daemon.enqueue(7);
  admin.exec(`CREATE TRIGGER stuck BEFORE DELETE ON member_queue BEGIN SELECT raise(ABORT, 'stuck'); END`);
  await expect(daemon.leave(position)).rejects.toThrow();
  await daemon.ping();
  const isNext = async () => (await command.queueState({ rankeeId: 7 })).isNext;
  expect(await isNext()).toBe(false);

  admin.exec('DROP TRIGGER stuck');
  await daemon.ping();
  await expect.poll(isNext).toBe(true);
});
