import { expect, test } from 'vitest';
import { openSqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { runNode } from '../../support/node-process.ts';
import { tempDir } from '../../support/temp-dir.ts';

interface Report {
  workspaceId: string;
  begun: number[];
}

test('processes that start at once in an empty directory create one database, and each change begins in only one of them', async () => {
  const dataDir = tempDir();
  const members = Array.from({ length: 25 }, (_, index) => index + 1);
  const startAt = Date.now() + 600;
  const process = (index: number) => `
    import { openSqliteStore } from './src/stores/sqlite/sqlite-store.ts';
    import { systemClock as clock } from './src/base/clock.ts';
    import { begin, newChange } from './test/contracts/store/samples.ts';
    await clock.sleep(Math.max(0, ${startAt} - Date.now()));
    const store = await openSqliteStore({ dataDir: ${JSON.stringify(dataDir)}, clock });
    const begun = [];
    for (const rankeeId of ${JSON.stringify(members)}) {
      const change = newChange({ id: 'chg_${index}_' + rankeeId, rankeeId });
      if (await begin(store, change, { after: undefined })) begun.push(rankeeId);
    }
    console.log(JSON.stringify({ workspaceId: (await store.getWorkspace()).id, begun }));
    await store.close();`;
  const reports = await Promise.all([1, 2, 3, 4, 5, 6].map((index) => runNode<Report>(process(index))));
  expect(new Set(reports.map((report) => report.workspaceId)).size).toBe(1);
  expect(reports.flatMap((report) => report.begun).sort((a, b) => a - b)).toEqual(members);

  const store = await openSqliteStore({ dataDir, clock: new ManualClock() });
  expect(await store.openChanges()).toHaveLength(members.length);
  expect(await store.listAudit({ limit: 100 })).toHaveLength(members.length);
  await store.close();
});
