import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { mintKey } from '../../src/core/api-key.ts';
import type { StoreEngine } from '../../src/ports/index.ts';
import { engineOf } from '../../src/stores/engine.ts';
import { tempDir } from '../support/temp-dir.ts';
import { operate } from './store/samples.ts';
import type { TestDatabase } from './store/store-case.ts';

const by = 'cli:ann@host';

/** Examines a backup with the SQLite engine, because every engine's backups are SQLite files. */
const examined = (file: string) => engineOf({ dataDir: tempDir(), clock: systemClock }).operations.examineBackup(file);

/**
 * Defines the tests that every engine's StoreOperations must pass. `isOnServer` means that a backup can't replace the
 * database, because other machines may be using it.
 */
export function storeOperationsContract(
  name: string,
  createDatabase: () => Promise<TestDatabase>,
  { isOnServer = false } = {},
): void {
  describe(`operations of ${name}`, () => {
    let database: TestDatabase;
    let engine: StoreEngine;

    beforeEach(async () => {
      database = await createDatabase();
      engine = database.engine(systemClock);
    });

    afterEach(() => database[Symbol.asyncDispose]());

    /** Creates the database with its workspace on the `free` plan. */
    const begin = async () => {
      const store = await engine.openStore();
      await operate({ store }).updateWorkspace({ plan: 'free' }, by);
      await store.close();
    };

    const planNow = async () => {
      const store = await engine.openStore();
      const { plan } = await store.getWorkspace();
      await store.close();
      return plan;
    };

    test('without a database, operations throw not_found or find nothing, and create nothing', async () => {
      const { operations } = engine;
      const missing = { code: 'not_found' };
      await expect(operations.check()).rejects.toMatchObject(missing);
      await expect(operations.migrate()).rejects.toMatchObject(missing);
      await expect(operations.tryMigration()).rejects.toMatchObject(missing);
      await expect(operations.backUp({ file: join(tempDir(), 'backup'), mayReplace: false })).rejects.toMatchObject(
        missing,
      );
      await expect(operations.streamBackup(async () => undefined)).rejects.toMatchObject(missing);
      const none = { keys: [], places: [], roles: [], users: [] };
      expect(await operations.findNames({ placesLike: '' })).toEqual(none);
      expect(await operations.isDaemonRunning()).toBe(false);
      expect(await operations.exists()).toBe(false);
    });

    test('an opened store exists, passes its checks, and has the newest schema', async () => {
      await begin();
      const { operations } = engine;
      expect(await operations.exists()).toBe(true);
      const { schema, newestSchema, checks } = await operations.check();
      expect(schema).toBe(newestSchema);
      expect(checks.filter(({ ok }) => !ok)).toEqual([]);
      const nothingToDo = { from: newestSchema, to: newestSchema, copy: null };
      expect(await operations.tryMigration()).toMatchObject(nothingToDo);
      expect(await operations.migrate()).toMatchObject(nothingToDo);
    });

    test('a backup of an open store is a snapshot, and does not replace an existing file by default', async () => {
      await begin();
      const { operations } = engine;
      const file = join(tempDir(), 'backup');
      const store = await engine.openStore();
      const { schema, rows } = await operations.backUp({ file, mayReplace: false });
      await operate({ store }).updateWorkspace({ plan: 'top' }, by);
      await expect(operations.backUp({ file, mayReplace: false })).rejects.toMatchObject({ code: 'already_exists' });
      expect(await examined(file)).toMatchObject({ schema, rows });
      await operations.backUp({ file, mayReplace: true });
      expect((await examined(file)).rows).toEqual({ ...rows, auditEvents: rows.auditEvents + 1 });
      await store.close();
    });

    test('a streamed backup is a valid backup with all rows', async () => {
      await begin();
      const chunks: Uint8Array[] = [];
      const { bytes, rows } = await engine.operations.streamBackup(async (chunk) => void chunks.push(chunk));
      const file = join(tempDir(), 'backup');
      writeFileSync(file, Buffer.concat(chunks), { flag: 'wx' });
      expect(Buffer.concat(chunks)).toHaveLength(bytes);
      expect(await examined(file)).toMatchObject({ rows });
    });

    if (isOnServer) {
      test('a restore is rejected, and the hint explains how to copy the backup instead', async () => {
        await begin();
        const file = join(tempDir(), 'backup');
        await engine.operations.backUp({ file, mayReplace: false });
        const refused = { code: 'usage', hint: expect.stringContaining('rankd store copy --from FILE --to URL') };
        await expect(engine.operations.restore({ file, by })).rejects.toMatchObject(refused);
        await expect(engine.operations.examineBackup(file)).rejects.toMatchObject(refused);
        expect(await planNow()).toBe('free');
      });
    } else {
      test('a restore returns to the snapshot and is audited; it fails while another process has the database open', async () => {
        await begin();
        const { operations } = engine;
        const file = join(tempDir(), 'backup');
        const store = await engine.openStore();
        await operations.backUp({ file, mayReplace: false });
        await operate({ store }).updateWorkspace({ plan: 'top' }, by);
        await expect(operations.restore({ file, by })).rejects.toMatchObject({ code: 'conflict' });
        await store.close();
        const { kept } = await operations.restore({ file, by });
        expect(await planNow()).toBe('free');
        const reopened = await engine.openStore();
        expect(await reopened.listAudit({ limit: 1 })).toMatchObject([{ by, action: 'database.restore' }]);
        await reopened.close();
        await operations.restore({ file: String(kept), by });
        expect(await planNow()).toBe('top');
      });

      test('a file that is not a backup is rejected, and the database is unchanged', async () => {
        await begin();
        const file = join(tempDir(), 'photo.jpg');
        await expect(engine.operations.examineBackup(file)).rejects.toMatchObject({ code: 'not_found' });
        writeFileSync(file, 'x'.repeat(10_000));
        const refused = { code: 'backup_unusable' };
        await expect(engine.operations.examineBackup(file)).rejects.toMatchObject(refused);
        await expect(engine.operations.restore({ file, by })).rejects.toThrow();
        expect(await planNow()).toBe('free');
      });
    }

    test('findNames returns unrevoked keys, matching places and users, and the roles of the served group', async () => {
      const store = await engine.openStore();
      for (const name of ['lobby', 'gone']) {
        const secret = mintKey('test').stored;
        await operate({ store }).createKey({ id: `key_${name}`, name, mode: 'test', scopes: ['rank'], secret }, by);
      }
      await operate({ store }).addEntries({ keyId: 'key_lobby', placeIds: [4242, 92, 93] }, by);
      await operate({ store }).revokeKey('key_gone', by);
      await store.storeRoles('group 7', [{ id: 4_400_000_020, name: 'Gone', rank: 20 }]);
      await store.storeRoles('group 7', [{ id: 4_400_000_050, name: 'Captain', rank: 50 }]);
      for (const [id, name] of ['Bob_7', 'Bobby', 'Ann', undefined].entries())
        await store.storeUserName({ id, name, at: 100 }, { since: 0 });
      const roles = [{ id: 4_400_000_050, name: 'Captain', rank: 50 }];
      const named = { keys: [{ name: 'lobby', mode: 'test' }], places: [92, 93] };
      expect(await engine.operations.findNames({ placesLike: '9' })).toEqual({ ...named, roles, users: [] });
      await store.storeRoles('group 8', [{ id: 50, name: 'Captain', rank: 50 }]);
      await store.storeServedGroup({ group: 'group 7' });
      await store.close();
      const some = { ...named, roles, users: ['Bob_7'] };
      expect(await engine.operations.findNames({ placesLike: '9', usersLike: 'bob_' })).toEqual(some);
      expect((await engine.operations.findNames({ placesLike: '', usersLike: '' })).users).toEqual([
        'Ann',
        'Bob_7',
        'Bobby',
      ]);
    });

    test('only one daemon can hold the lock, and every process can see whether it is held', async () => {
      const { operations } = engine;
      const lock = await operations.lockDaemon();
      expect(await operations.isDaemonRunning()).toBe(true);
      await expect(operations.lockDaemon()).rejects.toMatchObject({ code: 'conflict' });
      await lock[Symbol.asyncDispose]();
      expect(await operations.isDaemonRunning()).toBe(false);
      await using _again = await operations.lockDaemon();
    });
  });
}
