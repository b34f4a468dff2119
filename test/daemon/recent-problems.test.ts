import { expect, test } from 'vitest';
import { type ErrorCode, reasons } from '../../src/base/errors.ts';
import { type DaemonState, RecentProblems } from '../../src/daemon/recent-problems.ts';

const loggedAt = 1_000_000;
const now = loggedAt + 60_000;

/** Nothing has succeeded since the problem was logged. */
const unchanged: DaemonState = {
  lasting: {} as DaemonState['lasting'],
  pausedKeys: new Set(),
  isCredentialDead: true,
  platformSucceededAt: { read: 0, write: 0 },
  storeWorks: async () => false,
  isChangeOpen: async () => true,
  failingWebhooks: new Set(),
};

const worked = { read: loggedAt + 1, write: loggedAt + 1 };

const endings: Record<string, { standing: Partial<DaemonState>; ends: ErrorCode[] }> = {
  'a read of Roblox': {
    standing: { platformSucceededAt: { ...worked, write: 0 } },
    ends: ['platform_unavailable', 'platform_busy', 'platform_rejected'],
  },
  'a write to Roblox': {
    standing: { platformSucceededAt: { ...worked, read: 0 } },
    ends: ['platform_unavailable', 'platform_busy', 'platform_rejected'],
  },
  'a read and a write with a working credential': {
    standing: { platformSucceededAt: worked, isCredentialDead: false },
    ends: ['platform_unavailable', 'platform_busy', 'platform_rejected', 'platform_credential'],
  },
  'a database that accepts writes': { standing: { storeWorks: async () => true }, ends: ['store_unavailable'] },
  'the outcome of the change': { standing: { isChangeOpen: async () => false }, ends: ['outcome_unknown'] },
  nothing: { standing: {}, ends: [] },
};

test.each(Object.entries(endings))('%s ends only the problems of its own kind', async (_, { standing, ends }) => {
  const ended: string[] = [];
  for (const code of Object.keys(reasons)) {
    const { left, afterADay } = await countProblems(code, { ...unchanged, ...standing });
    if (left === 0) ended.push(code);
    expect([code, afterADay]).toEqual([code, 0]);
  }
  expect(ended.toSorted()).toEqual(ends.toSorted());
});

async function countProblems(code: string, standing: DaemonState): Promise<{ left: number; afterADay: number }> {
  const problems = new RecentProblems();
  const line = { level: 'warn', time: new Date(loggedAt).toISOString(), msg: 'failed', code, changeId: 'chg_1' };
  problems.note(JSON.stringify(line));
  const left = (await problems.newestFirst(standing, now)).length;
  const afterADay = (await problems.newestFirst(standing, loggedAt + 86_400_001)).length;
  return { left, afterADay };
}

test.each(['read', 'write'] as const)(
  'a successful %s ends a problem only if it came later; a read does not end a problem with writes',
  async (kind) => {
    const before = { read: 0, write: 0, [kind]: loggedAt };
    for (const code of ['platform_unavailable', 'platform_busy', 'platform_rejected', 'platform_credential'])
      expect(
        (await countProblems(code, { ...unchanged, isCredentialDead: false, platformSucceededAt: before })).left,
      ).toBe(1);
    const after = { read: 0, write: 0, [kind]: loggedAt + 1 };
    const standing = { ...unchanged, isCredentialDead: false, platformSucceededAt: after };
    expect((await countProblems('platform_credential', standing)).left).toBe(kind === 'write' ? 0 : 1);
  },
);
