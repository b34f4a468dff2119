import { isoTime } from '../../base/iso-time.ts';
import type { Workspace } from '../../core/model.ts';

/** The workspace; times are ISO 8601. */
export function workspaceDocument({ id, name, plan, active, createdAt }: Workspace) {
  return { id, name, plan, active, createdAt: isoTime(createdAt) };
}
