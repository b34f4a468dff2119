import { expect, test } from 'vitest';
import type { DaemonContext } from '../../src/usecases/daemon-context.ts';
import { findUndoTargets, runUndo } from '../../src/usecases/undo/undo-changes.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';

const { trainee, officer } = sampleRoles;
const [ann, bob] = [20_001, sampleUsers.trainee];
const always = Number.POSITIVE_INFINITY;

async function promote({ fake, rank }: OpenCloudApp, ...userIds: number[]): Promise<void> {
  for (const userId of userIds) {
    fake.group.setMember(userId, [trainee]);
    expect((await rank(userId)).status).toBe(200);
  }
}

async function undoAll(app: DaemonContext): Promise<Record<number, { state: string; changeId?: string | undefined }>> {
  const selection = { placeId: 1 };
  const { members, changes, undoId } = await findUndoTargets(app, selection);
  const command = { selection, undoId, by: 'cli:ann@host', dryRun: false };
  const stop = new AbortController().signal;
  const { results } = await runUndo(app, { members, changes, command }, { stop, report: () => undefined });
  const outcomes = results.map((result): [number, { state: string; changeId?: string | undefined }] => [
    result.rankeeId,
    { state: result.state, ...('changeId' in result && { changeId: result.changeId }) },
  ]);
  return Object.fromEntries(outcomes);
}

async function findChange({ app }: OpenCloudApp, id: string | undefined): Promise<unknown> {
  return await app.store.findChange(id ?? '');
}

test(
  'a member whom Roblox refuses to restore is reported and recorded as refused; the others are restored',
  onOpenCloud(async (system) => {
    const { app, fake } = system;
    await promote(system, ann, bob);
    fake.faults.add({ operation: 'assign', userId: bob, kind: 'status 403' });
    const result = await undoAll(app);
    expect(result).toMatchObject({ [ann]: { state: 'put_back' }, [bob]: { state: 'refused' } });
    expect(await findChange(system, result[bob]?.changeId)).toMatchObject({
      state: 'refused',
      code: 'above_acting_account',
    });
    expect([fake.group.held(ann), fake.group.held(bob)]).toEqual([[trainee], [officer]]);
  }),
);

test(
  'a member whose undo cannot be confirmed is reported as unknown until it is reconciled',
  onOpenCloud(
    async (system) => {
      const { app, fake } = system;
      await promote(system, bob);
      fake.faults.add({ operation: 'assign', kind: 'reset', times: always });
      const result = await undoAll(app);
      expect(result).toMatchObject({ [bob]: { state: 'unknown' } });
      expect(await findChange(system, result[bob]?.changeId)).toMatchObject({ state: 'unknown' });
      fake.faults.clear();
      await system.recover();
      expect(await undoAll(app)).toMatchObject({ [bob]: { state: 'put_back' } });
      expect(fake.group.held(bob)).toEqual([trainee]);
    },
    { deadlineMs: 500, readLagMs: 100 },
  ),
);

test(
  'an undo whose outcome cannot be stored is reported as unknown',
  onOpenCloud(async (system) => {
    const { app, fake } = system;
    await promote(system, bob);
    const updateChange = async () => {
      throw new Error('the disk is full');
    };
    const result = await undoAll({ ...app, store: { ...app.store, updateChange } });
    expect(result).toEqual({ [bob]: { state: 'unknown' } });
    expect(fake.group.held(bob)).toEqual([trainee]);
    await system.recover();
    expect(await app.store.listChanges({ limit: 9 })).toMatchObject([{ state: 'applied' }, { state: 'applied' }]);
  }),
);

test(
  'a member who has left the group is reported as such',
  onOpenCloud(async (system) => {
    const { app, fake } = system;
    await promote(system, bob);
    fake.group.removeMember(bob);
    expect(await undoAll(app)).toEqual({ [bob]: { state: 'left_group' } });
  }),
);

test.each([
  ['does not respond to reads of members', { operation: 'memberships', userId: bob, kind: 'status 503' }],
  ['has no room for the write', { operation: 'assign', kind: 'status 429', headers: { 'retry-after': '30' } }],
] as const)('an undo is retried if Roblox %s', (_, fault) =>
  onOpenCloud(
    async (system) => {
      const { app, fake, clock } = system;
      await promote(system, bob);
      clock.skip(61_000);
      fake.faults.add({ ...fault, times: always });
      const result = undoAll(app);
      await clock.sleep(800); // longer than the first attempt takes
      fake.faults.clear();
      clock.skip(31_000);
      expect(await result).toEqual({ [bob]: { state: 'put_back' } });
      expect(fake.group.held(bob)).toEqual([trainee]);
    },
    { deadlineMs: 500, readLagMs: 100 },
  )(),
);
