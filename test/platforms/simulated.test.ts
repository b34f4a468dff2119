import { execFile } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sampleGroup } from '../../src/platforms/sample-group.ts';
import { SimulatedPlatform } from '../../src/platforms/simulated.ts';
import type { CallContext } from '../../src/ports/index.ts';
import { platformContract } from '../contracts/platform-contract.ts';
import { roles } from '../support/open-test-app.ts';
import { tempDir } from '../support/temp-dir.ts';

let folder: string;
let file: string;
let opened: SimulatedPlatform[];

beforeEach(() => {
  folder = tempDir();
  file = join(folder, 'group.db');
  opened = [];
});

afterEach(async () => {
  for (const platform of opened) await platform.close();
});

platformContract('the simulated platform', async () => ({
  platform: open(),
  call,
  ids: {
    member: 1001,
    officer: 8_589_935_601,
    veteran: 1003,
    memberOnly: 1004,
    actor: 9001,
    owner: 9000,
    stranger: 4242,
    peer: 1010,
  },
  roles,
  close: async () => undefined,
}));

describe('the file of a simulated group', () => {
  test('two handles on one file see each other’s writes', async () => {
    const [daemon, cli] = [open(), open()];
    await cli.assignRole({ userId: 1001, roleId: roles.officer }, call());
    expect(await heldBy(daemon, 1001)).toContain(roles.officer);
    await daemon.unassignRole({ userId: 1001, roleId: roles.trainee }, call());
    expect(await heldBy(cli, 1001)).toEqual([roles.officer, roles.base]);
  });

  test('writes survive a restart', async () => {
    const first = open();
    await first.assignRole({ userId: 1004, roleId: roles.captain }, call());
    await first.close();
    expect(await heldBy(open(), 1004)).toEqual([roles.captain, roles.base]);
  });

  test('a different group replaces the one in the file; the same group does not', async () => {
    const first = open();
    await first.assignRole({ userId: 1004, roleId: roles.captain }, call());
    open({ ...sampleGroup, actingUserId: 9000 });
    expect(await heldBy(first, 1004)).toContain(roles.captain);

    open({ ...sampleGroup, name: 'Another Group', members: sampleGroup.members.slice(3) });
    expect(await first.group(call())).toMatchObject({ name: 'Another Group', memberCount: 10 });
    expect(await first.getMember(1001, call())).toBeUndefined();
    expect(await heldBy(first, 1004)).toEqual([roles.base]);
  });

  test('processes that create a file at the same moment all open it, with the same group', async () => {
    const userIds = [1001, 1002, 1004, 1005, 1006, 1007];
    const opener = (userId: number) => `
      const { SimulatedPlatform } = await import(${JSON.stringify(new URL('../../src/platforms/simulated.ts', import.meta.url))});
      const { sampleGroup } = await import(${JSON.stringify(new URL('../../src/platforms/sample-group.ts', import.meta.url))});
      for (let i = 0; i < 12; i += 1) {
        while (Date.now() < ${Date.now() + 500} + i * 50);
        const platform = SimulatedPlatform.open({ file: ${JSON.stringify(file)} + i, seed: sampleGroup });
        const call = { signal: new AbortController().signal, deadlineAt: Infinity, lane: 'test' };
        await platform.assignRole({ userId: ${userId}, roleId: ${roles.captain} }, call);
      }`;
    const flags = ['--no-warnings', '--input-type=module', '--eval'];
    await Promise.all(userIds.map((userId) => promisify(execFile)(process.execPath, [...flags, opener(userId)])));
    for (let i = 0; i < 12; i += 1) {
      const platform = open(sampleGroup, sampleGroup.actingUserId, `${file}${i}`);
      expect(await platform.group(call())).toMatchObject({ memberCount: sampleGroup.members.length });
      for (const userId of userIds) expect(await heldBy(platform, userId)).toContain(roles.captain);
    }
  });

  test('only its owner can read it', async () => {
    const previous = process.umask(0);
    try {
      await open().assignRole({ userId: 1001, roleId: roles.officer }, call());
    } finally {
      process.umask(previous);
    }
    for (const suffix of ['', '-wal', '-shm']) expect(statSync(file + suffix).mode & 0o777).toBe(0o600);
  });

  test('a database of another program is rejected and not changed', () => {
    const other = new Database(file);
    other.exec('CREATE TABLE members (name TEXT)');
    other.close();
    expect(() => open()).toThrow(expect.objectContaining({ code: 'config_invalid' }));
    const reopened = new Database(file);
    expect(reopened.prepare('SELECT name FROM sqlite_schema').pluck().all()).toEqual(['members']);
    reopened.close();
  });

  test('a missing folder, or a file that is not a database, throws store_unavailable', () => {
    expect(() => SimulatedPlatform.open({ file: join(folder, 'none', 'group.db'), seed: sampleGroup })).toThrow(
      unavailable,
    );
    writeFileSync(file, 'not a database at all, but long enough to be read as the header of one. '.repeat(20));
    expect(() => open()).toThrow(unavailable);
  });

  test('a write to a file that stays locked throws store_unavailable and changes nothing', async () => {
    const platform = open();
    const blocker = new Database(file);
    blocker.exec('BEGIN IMMEDIATE');
    await expect(platform.assignRole({ userId: 1001, roleId: roles.officer }, call())).rejects.toThrow(unavailable);
    blocker.exec('ROLLBACK');
    blocker.close();
    expect(await heldBy(platform, 1001)).toEqual([roles.trainee, roles.base]);
  });
});

describe('the acting account of a simulated group', () => {
  test('an owner as the acting account can give every role except its own', async () => {
    const platform = open(sampleGroup, 9000);
    await platform.assignRole({ userId: 1010, roleId: roles.captain }, call());
    await platform.assignRole({ userId: 1001, roleId: roles.admin }, call());
    expect(await heldBy(platform, 1001)).toContain(roles.admin);
    expect(await platform.checkCredential(call())).toMatchObject({ userId: 9000, canWrite: true });
  });

  test('an acting account that is not in the group cannot write', async () => {
    const platform = open(sampleGroup, 4242);
    expect(await platform.checkCredential(call())).toMatchObject({ userId: 4242, canWrite: false });
    const refused = expect.objectContaining({ code: 'above_acting_account' });
    await expect(platform.assignRole({ userId: 1004, roleId: roles.trainee }, call())).rejects.toThrow(refused);
  });

  test.each([2 ** 53, 1.5, Number.NaN])('the id %d is refused', async (id) => {
    const refused = expect.objectContaining({ code: 'platform_rejected' });
    const platform = open();
    await expect(platform.getMember(id, call())).rejects.toThrow(refused);
    await expect(platform.assignRole({ userId: id, roleId: roles.trainee }, call())).rejects.toThrow(refused);
    await expect(platform.assignRole({ userId: 1001, roleId: id }, call())).rejects.toThrow(refused);
  });
});

const unavailable = expect.objectContaining({ code: 'store_unavailable' });

function open(seed = sampleGroup, actingUserId = seed.actingUserId, path = file): SimulatedPlatform {
  const platform = SimulatedPlatform.open({ file: path, seed: { ...seed, actingUserId } });
  opened.push(platform);
  return platform;
}

function call(): CallContext {
  return { signal: AbortSignal.timeout(5000), deadlineAt: performance.now() + 5000, lane: 'test' };
}

async function heldBy(platform: SimulatedPlatform, userId: number): Promise<number[] | undefined> {
  return (await platform.getMember(userId, call()))?.roleIds;
}
