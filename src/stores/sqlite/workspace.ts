import { RankdError } from '../../base/errors.ts';
import { newId } from '../../core/api-key.ts';
import type { Workspace } from '../../core/model.ts';
import type { Clock, WorkspaceStore } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { appendEvents } from './audit.ts';
import type { Connection } from './engine/connection.ts';
import type { RowOf } from './engine/row.ts';

export function workspaceStore(db: Connection): WorkspaceStore {
  return {
    async getWorkspace() {
      return readWorkspace(db);
    },

    async updateWorkspace(judge) {
      return db.write(() => {
        const { change, events } = allowed(judge(readWorkspace(db)));
        const { active, plan } = change;
        db.run('UPDATE workspace SET active = @active, plan = @plan', { active: Number(active), plan });
        appendEvents(db, events);
        return readWorkspace(db);
      });
    },
  };
}

/** Part of making a database: it has exactly one workspace from its first moment on. */
export function createWorkspace(db: Connection, clock: Pick<Clock, 'now'>): void {
  db.run(
    `INSERT INTO workspace (one_row, id, name, plan, active, created_at)
     VALUES (1, @id, 'default', 'top', 1, @createdAt)`,
    { id: newId('ws'), createdAt: clock.now() },
  );
}

function readWorkspace(db: Connection): Workspace {
  const row = db.get<RowOf<Workspace>>('SELECT id, name, plan, active, created_at AS createdAt FROM workspace');
  if (row === undefined) {
    throw new RankdError('store_unavailable', 'The database of rankd has lost its workspace.', {
      hint: 'stop the daemon and restore a backup: rankd restore FILE',
    });
  }
  return { ...row, active: row.active === 1 };
}
