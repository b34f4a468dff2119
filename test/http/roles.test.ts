import { describe, expect, test } from 'vitest';
import { changeRank } from '../../src/usecases/change/change-rank.ts';
import { codeOf, expectError, messageOf } from '../support/answers.ts';
import { openTestApp, place, roles, type TestApp } from '../support/open-test-app.ts';

const ladder = [10, 20];
const config = { group: { ladder, rankOne: 'custom' } } as const;

async function openScene() {
  const app = await openTestApp({ config: { group: { ...config.group, ladder: [...ladder] } } });
  const key = await app.createKey({ scopes: ['rank', 'roles'] });
  const ask = (operation: string, body: object, headers = {}) =>
    app.post(`/v2/${operation}?placeid=${place}`, { key, body: { robloxUserId: 1001, ...body }, headers });
  return { app, key, ask, [Symbol.asyncDispose]: () => app.close() };
}

const newest = async ({ store }: TestApp) => (await store.listChanges({ limit: 1 }))[0];

describe('an extra role', () => {
  test('is given and taken by name, number or id, and the rank and all other roles stay', async () => {
    await using scene = await openScene();
    const { app, ask } = scene;
    for (const role of ['Captain', 50, String(roles.captain)]) {
      const added = await ask('roles/add', { role, reason: 'gamepass' });
      expect(added).toMatchObject({
        status: 200,
        json: {
          message: 'Member 1001 now also holds Captain (rank 50). (simulated group)',
          ...{ robloxUserId: 1001, roleId: roles.captain, roleName: 'Captain' },
        },
      });
      expect(await newest(app)).toMatchObject({ kind: 'role_added', roleId: roles.captain, reason: 'gamepass' });
      expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.captain, roles.base]);
      expect(messageOf(await ask('roles/add', { role }))).toMatch(/^Member 1001 already holds Captain/);
      const removed = await ask('roles/remove', { role });
      expect(messageOf(removed)).toBe('Member 1001 no longer holds Captain (rank 50). (simulated group)');
      expect(await newest(app)).toMatchObject({ kind: 'role_removed', demotion: true });
      expect(await app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
    }
    expect(messageOf(await ask('roles/remove', { role: 50 }))).toMatch(/^Member 1001 does not hold Captain/);
  });

  test('stays when the rank changes, and is not part of the reported change', async () => {
    await using scene = await openScene();
    await scene.ask('roles/add', { role: 'Captain' });
    expect((await scene.ask('rank', { rank: 20 })).json).toMatchObject({ oldRank: 10, newRank: 20 });
    expect(await scene.app.heldBy(1001)).toEqual([roles.officer, roles.captain, roles.base]);
  });

  test('cannot be a ladder role, the base role, the owner role or an unknown role', async () => {
    await using scene = await openScene();
    const refusals = [
      ['Officer', 403, 'rank_not_allowed', '"Officer" is a rank of the ladder in group.ladder. Choose one of '],
      [20, 403, 'rank_not_allowed', '"Officer" is a rank of the ladder'],
      ['Member', 403, 'rank_not_allowed', '"Member" is the base role, which can never be given.'],
      ['Owner', 403, 'rank_not_allowed', '"Owner" has the rank of the owner role, which can never be given.'],
      [0, 403, 'rank_not_allowed', '"Guest" is the guest role, which no member holds.'],
      ['Kaptain', 400, 'unknown_rank', 'Did you mean Captain (rank 50)?'],
      [77, 400, 'unknown_rank', 'Choose one of 1 (Recruit), 50 (Captain), 200 (Admin).'],
      ['', 400, 'invalid_request', 'role must be'],
    ] as const;
    for (const [role, status, code, message] of refusals) {
      for (const operation of ['roles/add', 'roles/remove']) {
        const answer = await scene.ask(operation, { role });
        expect([role, answer.status, codeOf(answer)]).toEqual([role, status, code]);
        expect(messageOf(answer)).toContain(message);
      }
    }
    expect(codeOf(await scene.ask('roles/add', { role: 'Admin' }))).toBe('above_acting_account');
    expect(await scene.app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
  });

  test('requires a ladder, and a member who is not suspended', async () => {
    await using plain = await openTestApp();
    const key = await plain.createKey({ scopes: ['roles'] });
    const body = { robloxUserId: 1001, role: 'Captain' };
    const refused = await plain.post(`/v2/roles/add?placeid=${place}`, { key, body });
    expectError(refused, { status: 409, code: 'needs_ladder', error: 'Needs a ladder' });
    await using scene = await openScene();
    const by = { by: 'cli:ann@host', dryRun: false };
    const request = { rankeeId: 1001, rankeeName: '', rankerId: 0, rankerName: '', newRankId: 0 };
    const at = { at: Number.POSITIVE_INFINITY, signal: new AbortController().signal };
    await changeRank(scene.app.app, { caller: by, request, hold: { kind: 'suspension' } }, at as never);
    expect(codeOf(await scene.ask('roles/add', { role: 'Captain' }))).toBe('member_suspended');
  });

  test('is given only once if the request is repeated with the same Idempotency-Key', async () => {
    await using scene = await openScene();
    const once = { 'idempotency-key': 'purchase 1' };
    const first = await scene.ask('roles/add', { role: 'Captain' }, once);
    await scene.ask('roles/remove', { role: 'Captain' });
    const repeat = await scene.ask('roles/add', { role: 'Captain' }, once);
    expect([repeat.status, repeat.headers['x-rank-change']]).toEqual([200, first.headers['x-rank-change']]);
    expect(repeat.headers['idempotent-replayed']).toBe('true');
    expect(await scene.app.heldBy(1001)).toEqual([roles.trainee, roles.base]);
  });
});
