import { expect, test } from 'vitest';
import type { DaemonContext } from '../../src/usecases/daemon-context.ts';
import { findUndoTargets, runUndo } from '../../src/usecases/undo/undo-changes.ts';
import { type OpenCloudApp, onOpenCloud, sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';

const { trainee, officer } = sampleRoles;
const [ann, bob] = [20_001, sampleUsers.trainee];
const always = Number.POSITIVE_INFINITY;

/** Makes each of them Officer from Trainee, as the changes to undo. */
async function promote({ fake, rank }: OpenCloudApp, ...userIds: number[]): Promise<void> {
  for (const userId of userIds) {
    fake.group.setMember(userId, [trainee]);
    expect((await rank(userId)).status).toBe(200);
  }
}

/**
 * Undoes all changes of the key. Returns the outcome for each member, with the id of the change that made it, if any.
 */
async function undoAll(app: DaemonContext): Promise<Record<number, { state: string; changeId?: string | undefined }>> {
  const selection = { placeId: 1 };
  const { members, changes, undoId } = await findUndoTargets(app, selection);
  const command = { selection, undoId, by: 'cli:ann@host', dryRun: false };
  const stop = new AbortController().signal;
  const { results } = await runUndo(app, { members, changes, command }, { stop, report: () => undefined });
  const told = results.map((result): [number, { state: string; changeId?: string | undefined }] => [
    result.rankeeId,
    { state: result.state, ...('changeId' in result && { changeId: result.changeId }) },
  ]);
  return Object.fromEntries(told);
}

async function kept({ app }: OpenCloudApp, id: string | undefined): Promise<unknown> {
  return await app.store.findChange(id ?? '');
}

test(
  'a member whom Roblox refuses to restore is reported and recorded as refused, the others are restored',
  onOpenCloud(async (system) => {
    const { app, fake } = system;
    await promote(system, ann, bob);
    fake.faults.add({ operation: 'assign', userId: bob, kind: 'status 403' });
    const told = await undoAll(app);
    expect(told).toMatchObject({ [ann]: { state: 'put_back' }, [bob]: { state: 'refused' } });
    expect(await kept(system, told[bob]?.changeId)).toMatchObject({ state: 'refused', code: 'above_acting_account' });
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
      const told = await undoAll(app);
      expect(told).toMatchObject({ [bob]: { state: 'unknown' } });
      expect(await kept(system, told[bob]?.changeId)).toMatchObject({ state: 'unknown' });
      fake.faults.clear();
      await system.recover();
      expect(await undoAll(app)).toMatchObject({ [bob]: { state: 'put_back' } });
      expect(fake.group.held(bob)).toEqual([trainee]);
    },
    { deadlineMs: 500, readLagMs: 100 },
  ),
);

test(
  'an undo whose outcome cannot be stored is not reported as done, nor as refused',
  onOpenCloud(async (system) => {
    const { app, fake } = system;
    await promote(system, bob);
    const updateChange = async () => {
      throw new Error('the disk is full');
    };
    const told = await undoAll({ ...app, store: { ...app.store, updateChange } });
    expect(told).toEqual({ [bob]: { state: 'unknown' } });
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
] as const)('an undo is tried again where Roblox %s', (_, fault) =>
  onOpenCloud(
    async (system) => {
      const { app, fake, clock } = system;
      await promote(system, bob);
      clock.skip(61_000);
      fake.faults.add({ ...fault, times: always });
      const told = undoAll(app);
      await clock.sleep(800); // beyond the time of the first attempt
      fake.faults.clear();
      clock.skip(31_000);
      expect(await told).toEqual({ [bob]: { state: 'put_back' } });
      expect(fake.group.held(bob)).toEqual([trainee]);
    },
    { deadlineMs: 500, readLagMs: 100 },
  )(),
);
