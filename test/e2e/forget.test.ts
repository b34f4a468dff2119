import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CliHome } from '../support/run-cli.ts';

/** The text of every file in the data directory, if it has one. */
function everything(dataDir: string): string {
  return readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.startsWith('rankd.db'))
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
    .join('\n');
}

test.concurrent('a forgotten person is no longer in any file of the database, and the audit is intact', async () => {
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

test.concurrent('an undo does not restore the roles of a forgotten person', async () => {
  using home = new CliHome();
  for (const user of ['1001', '1002']) expect((await home.here(['rank', 'set', user, '50'])).code).toBe(0);
  expect((await home.here(['forget', '1001', '-y'])).code).toBe(0);
  expect((await home.here(['history', 'undo', '--by', 'cli', '--since', '1h', '-y'])).code).toBe(0);
  expect((await home.here(['rank', 'show', '1001'])).stdout).toContain('Captain');
  expect((await home.here(['rank', 'show', '1002'])).stdout).not.toContain('Captain');
});
