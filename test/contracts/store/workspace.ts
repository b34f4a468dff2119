import { describe, expect, test } from 'vitest';
import { newKey, operate, operator } from './samples.ts';
import type { StoreCase } from './store-case.ts';

export function workspaceContract(at: StoreCase): void {
  describe('the workspace', () => {
    test('exists from the start: active, on the top plan, the same for every handle', async () => {
      const workspace = await at.store.getWorkspace();
      expect(workspace).toEqual({
        id: expect.stringMatching(/^ws_[0-9A-Za-z]{12}$/),
        name: 'default',
        plan: 'top',
        active: true,
        createdAt: at.clock.now(),
      });
      expect(await at.other.getWorkspace()).toEqual(workspace);
    });

    test('takes an id before the first key exists, and retains it afterwards', async () => {
      expect(await at.store.adoptWorkspaceId('ws_given')).toMatchObject({ id: 'ws_given', active: true });
      expect(await at.other.getWorkspace()).toMatchObject({ id: 'ws_given' });
      await operate(at).createKey(newKey('game'), operator);
      expect(await at.store.adoptWorkspaceId('ws_other')).toMatchObject({ id: 'ws_given' });
    });

    test('a suspension through another handle applies at once', async () => {
      expect(await at.store.getWorkspace()).toMatchObject({ active: true });
      expect(await operate({ ...at, store: at.other }).updateWorkspace({ active: false }, operator)).toMatchObject({
        active: false,
        plan: 'top',
      });
      expect(await at.store.getWorkspace()).toMatchObject({ active: false, plan: 'top' });
    });

    test('a new plan does not end a suspension, and resuming does not change the plan', async () => {
      await operate(at).updateWorkspace({ active: false }, operator);
      expect(await operate(at).updateWorkspace({ plan: 'free' }, operator)).toMatchObject({
        active: false,
        plan: 'free',
      });
      expect(await operate(at).updateWorkspace({ active: true }, operator)).toMatchObject({
        active: true,
        plan: 'free',
      });
    });

    test('is audited on every change', async () => {
      const { id } = await at.store.getWorkspace();
      await operate(at).updateWorkspace({ active: false }, operator);
      await operate(at).updateWorkspace({ active: true, plan: 'free' }, operator);
      expect(await at.store.listAudit({ limit: 10 })).toMatchObject([
        { action: 'workspace.plan', subject: id, by: operator, detail: { from: 'top', to: 'free' } },
        { action: 'workspace.resume', subject: id, by: operator },
        { action: 'workspace.suspend', subject: id, by: operator },
      ]);
    });

    test('the store answers a ping until it is closed, then throws store_unavailable', async () => {
      await at.store.ping();
      await at.store.pingWrites();
      await at.store.close();
      await expect(at.store.pingWrites()).rejects.toMatchObject({ code: 'store_unavailable' });
      await expect(at.store.ping()).rejects.toMatchObject({ name: 'RankdError', code: 'store_unavailable' });
      await expect(operate(at).updateWorkspace({ active: false }, operator)).rejects.toMatchObject({
        code: 'store_unavailable',
      });
      await at.store.close();
      await at.other.ping();
    });
  });
}
