import { type Actor, planChanged, workspaceActivated } from './events.ts';
import type { Plan, Workspace } from './model.ts';
import type { Verdict } from './verdict.ts';

/** Suspends or resumes the workspace, or changes its plan. */
export function judgeWorkspace(
  { active, plan }: { active?: boolean | undefined; plan?: Plan | undefined },
  actor: Actor,
): (workspace: Workspace) => Verdict<Workspace> {
  return (workspace) => ({
    change: { ...workspace, active: active ?? workspace.active, plan: plan ?? workspace.plan },
    events: [
      ...(active === undefined ? [] : [workspaceActivated(workspace.id, active, actor)]),
      ...(plan === undefined ? [] : [planChanged(workspace.id, { from: workspace.plan, to: plan }, actor)]),
    ],
  });
}
