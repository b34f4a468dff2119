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

const endings: Record<string, { state: Partial<DaemonState>; ends: ErrorCode[] }> = {
  'a read of Roblox': {
    state: { platformSucceededAt: { ...worked, write: 0 } },
    ends: ['platform_unavailable', 'platform_busy', 'platform_rejected'],
  },
  'a write to Roblox': {
    state: { platformSucceededAt: { ...worked, read: 0 } },
    ends: ['platform_unavailable', 'platform_busy', 'platform_rejected'],
  },
  'a read and a write with a working credential': {
    state: { platformSucceededAt: worked, isCredentialDead: false },
    ends: ['platform_unavailable', 'platform_busy', 'platform_rejected', 'platform_credential'],
  },
  'a database that accepts writes': { state: { storeWorks: async () => true }, ends: ['store_unavailable'] },
  'the outcome of the change': { state: { isChangeOpen: async () => false }, ends: ['outcome_unknown'] },
  nothing: { state: {}, ends: [] },
};

test.each(Object.entries(endings))('%s ends only the problems of its own kind', async (_, { state, ends }) => {
  const ended: string[] = [];
  for (const code of Object.keys(reasons)) {
    const { left, afterADay } = await countProblems(code, { ...unchanged, ...state });
    if (left === 0) ended.push(code);
    expect([code, afterADay]).toEqual([code, 0]);
  }
  expect(ended.toSorted()).toEqual(ends.toSorted());
});

async function countProblems(code: string, state: DaemonState): Promise<{ left: number; afterADay: number }> {
  const problems = new RecentProblems();
  const line = { level: 'warn', time: new Date(loggedAt).toISOString(), msg: 'failed', code, changeId: 'chg_1' };
  problems.note(JSON.stringify(line));
  const left = (await problems.newestFirst(state, now)).length;
  const afterADay = (await problems.newestFirst(state, loggedAt + 86_400_001)).length;
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
    const state = { ...unchanged, isCredentialDead: false, platformSucceededAt: after };
    expect((await countProblems('platform_credential', state)).left).toBe(kind === 'write' ? 0 : 1);
  },
);
