import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { judgeErasure } from '../../src/core/forgetting.ts';
import { engineOf } from '../../src/stores/engine.ts';
import { newChange } from '../contracts/store/samples.ts';
import { CliHome } from '../support/run-cli.ts';

function everything(dataDir: string): string {
  return readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.startsWith('rankd.db'))
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
    .join('\n');
}

test.concurrent('a forgotten user is no longer in any file of the database, and the audit is intact', async () => {
  using home = new CliHome();
  for (const rank of ['20', '50']) expect((await home.here(['rank', 'set', '8589935601', rank])).code).toBe(0);
  expect(everything(home.dataDir)).toContain('8589935601');

  expect(await home.json('forget', '8589935601', '--dry-run')).toMatchObject({ dryRun: true, pseudonym: null });
  const { stderr, code } = await home.here(['forget', '8589935601']);
  expect({ stderr, code }).toMatchObject({ code: 2, stderr: expect.stringContaining('add -y') });
  const forgotten = await home.json<{ pseudonym: number }>('forget', '8589935601', '-y');
  expect(forgotten).toMatchObject({ dryRun: false, changes: expect.any(Number), pseudonym: expect.any(Number) });
  expect(forgotten.pseudonym).toBeLessThan(0);

  expect(everything(home.dataDir)).not.toContain('8589935601');
  const { changes } = await home.json<{ changes: Array<{ rankeeId: number }> }>('history', 'list');
  expect(new Set(changes.map(({ rankeeId }) => rankeeId))).toEqual(new Set([forgotten.pseudonym]));
  expect((await home.here(['audit', 'verify'])).code).toBe(0);
  expect((await home.here(['forget', '8589935601', '-y'])).code).toBe(3);
});

/** Stores requests from Roblox to erase these users, received long ago. */
async function request(home: CliHome, ...userIds: number[]): Promise<void> {
  const store = await engineOf({ dataDir: home.dataDir, clock: systemClock }).openStore();
  for (const [index, userId] of userIds.entries()) {
    const one = { id: `n-${index}`, userId, requestedAt: 1_000, receivedAt: Date.UTC(2026, 0, 2 + index) };
    await store.recordErasure(one, judgeErasure(one, { by: 'roblox', at: one.receivedAt, pseudonym: -5 }));
  }
  await store.close();
}

test.concurrent('erasure requests from Roblox are listed, confirmed once and carried out; status and doctor report waiting ones', async () => {
  using home = new CliHome();
  for (const user of ['1001', '1002', '1003']) expect((await home.here(['rank', 'set', user, '50'])).code).toBe(0);
  await request(home, 1001, 1002, 1001);
  expect((await home.here(['forget'])).code).toBe(2);
  expect((await home.here(['forget', '1001', '--requested'])).code).toBe(2);
  expect(await home.json('forget', '--requested', '--dry-run')).toMatchObject({
    dryRun: true,
    requests: [
      { userId: 1001, requestedAt: '1970-01-01T00:00:01.000Z', receivedAt: '2026-01-02T00:00:00.000Z', changes: 1 },
      { userId: 1002, pseudonym: null, error: null },
    ],
  });
  expect((await home.here(['status'])).stdout).toMatch(
    /^to be forgotten +3 requests, the oldest from 2026-01-02T.*--requested$/m,
  );
  expect((await home.here(['doctor', '--offline'])).stdout).toMatch(/^warn {2}forgetting +3 requests .*2026-01-02/m);

  const unconfirmed = await home.here(['forget', '--requested']);
  expect(unconfirmed).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/1001 .*\n1002 .*\n.*Permanently forget these 2 users/),
  });
  const { code, stdout } = await home.here(['forget', '--requested', '-y']);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^User 1001 is forgotten: 1 rank change and .*\nUser 1002 is forgotten: .*\n$/),
  ]);
  const { changes } = await home.json<{ changes: Array<{ rankeeId: number }> }>('history', 'list');
  expect(changes.map(({ rankeeId }) => rankeeId > 0)).toEqual([true, false, false]);
  expect(await home.here(['forget', '--requested'])).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'No requests are waiting.\n',
  });
  expect((await home.here(['audit', 'verify'])).code).toBe(0);
});

test.concurrent('an erasure request waits while the member’s rank is being changed, and the others are carried out', async () => {
  using home = new CliHome();
  for (const user of ['1001', '1002']) await home.json('rank', 'set', user, '50');
  await request(home, 1001, 1002);
  const store = await engineOf({ dataDir: home.dataDir, clock: systemClock }).openStore();
  const open = newChange({ rankeeId: 1001, state: 'pending' });
  await store.beginChange(open, { windows: [] }, () => ({ do: 'begin', holds: [], events: [] }));
  const { code, stdout } = await home.here(['forget', '--requested', '-y']);
  await store.close();
  expect([code, stdout]).toEqual([
    4,
    expect.stringMatching(
      /^User 1001: A rank change that names user 1001 is in progress\.\nUser 1002 is forgotten: .*\n$/,
    ),
  ]);
  expect(await home.json('forget', '--requested', '--dry-run')).toMatchObject({ requests: [{ userId: 1001 }] });
});

test.concurrent('an undo does not restore the roles of a forgotten user', async () => {
  using home = new CliHome();
  for (const user of ['1001', '1002']) expect((await home.here(['rank', 'set', user, '50'])).code).toBe(0);
  expect((await home.here(['forget', '1001', '-y'])).code).toBe(0);
  expect((await home.here(['history', 'undo', '--by', 'cli', '--since', '1h', '-y'])).code).toBe(0);
  expect((await home.here(['rank', 'show', '1001'])).stdout).toContain('Captain');
  expect((await home.here(['rank', 'show', '1002'])).stdout).not.toContain('Captain');
});
