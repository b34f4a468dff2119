import { isoTime } from '../../base/time.ts';
import { judgeWorkspace } from '../../core/key-changes.ts';
import type { Plan, Workspace } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';

export function showWorkspace({ store }: Pick<Ports, 'store'>): Promise<Workspace> {
  return store.getWorkspace();
}

/** Changes the workspace. While it is suspended, or not on the top plan, rankd refuses every key. */
export function changeWorkspace(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { by, ...change }: { active?: boolean; plan?: Plan; by: string },
): Promise<Workspace> {
  return store.updateWorkspace(judgeWorkspace(change, { by, at: clock.now() }));
}

export function workspaceDocument({ id, name, plan, active, createdAt }: Workspace) {
  return { id, name, plan, active, createdAt: isoTime(createdAt) };
}
