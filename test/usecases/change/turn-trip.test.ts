import { expect, test } from 'vitest';
import { deadlineIn } from '../../../src/base/clock.ts';
import type { Store } from '../../../src/ports/index.ts';
import { changeRank } from '../../../src/usecases/change/change-rank.ts';
import { onOpenCloud, sampleUsers } from '../../support/open-cloud-app.ts';

test(
  'a change reads the facts about its member and its ranker once, at the same time as its queue position',
  onOpenCloud(
    async ({ app }) => {
      const reads: string[] = [];
      const recordingRead = <Name extends 'lastWritten' | 'lastAppliedAt' | 'lastRankedOthersAt'>(name: Name) => {
        const ask = async (id: number) => {
          reads.push(name);
          return app.store[name](id);
        };
        return { [name]: ask } as Pick<Store, Name>;
      };
      const { promise: open, resolve: release } = Promise.withResolvers<void>();
      const store: Store = {
        ...app.store,
        ...recordingRead('lastWritten'),
        ...recordingRead('lastAppliedAt'),
        ...recordingRead('lastRankedOthersAt'),
        latestChange: (id) => open.then(() => app.store.latestChange(id)),
      };
      const request = { rankeeId: sampleUsers.trainee, rankeeName: '', rankerId: 5, rankerName: 'Ann', newRankId: 20 };
      using deadline = deadlineIn(app.clock, app.deadlineMs);
      const changing = changeRank({ ...app, store }, { caller: { by: 'key:1', dryRun: false }, request }, deadline);
      const all = ['lastAppliedAt', 'lastRankedOthersAt', 'lastWritten'];
      await expect.poll(() => reads.toSorted()).toEqual(all);
      release();
      expect((await changing).change).toMatchObject({ state: 'applied' });
      expect(reads.toSorted()).toEqual(all);
    },
    { policy: { cooldowns: [{ from: 0, forMs: 1_000 }], rankerCooldownMs: 1_000 }, deadlineMs: 30_000, readLagMs: 50 },
  ),
);
