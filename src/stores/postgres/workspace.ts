import { RankdError } from '../../base/errors.ts';
import { newId } from '../../core/api-key.ts';
import type { Workspace } from '../../core/model.ts';
import type { Clock, WorkspaceStore } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { appendEvents } from './audit.ts';
import type { Database, Reader, Transaction } from './engine/database.ts';

export function workspaceStore(db: Database): WorkspaceStore {
  return {
    async getWorkspace() {
      return readWorkspace(db);
    },

    async updateWorkspace(judge) {
      return db.write(async (transaction) => {
        const { change, events } = allowed(judge(await readWorkspace(transaction)));
        const { active, plan } = change;
        transaction.run('UPDATE rankd.workspace SET active = @active, plan = @plan', { active, plan });
        await appendEvents(transaction, events);
        return readWorkspace(transaction);
      });
    },
  };
}

/** Part of making a database: it has exactly one workspace from its first moment on. */
export function createWorkspace(transaction: Transaction, clock: Pick<Clock, 'now'>): void {
  transaction.run(
    `INSERT INTO rankd.workspace (id, name, plan, active, created_at) VALUES (@id, 'default', 'top', true, @createdAt)`,
    { id: newId('ws'), createdAt: clock.now() },
  );
}

async function readWorkspace(db: Reader): Promise<Workspace> {
  const row = await db.get<Workspace>('SELECT id, name, plan, active, created_at AS "createdAt" FROM rankd.workspace');
  if (row !== undefined) return row;
  throw new RankdError('store_unavailable', 'The database of rankd has lost its workspace.', {
    hint: 'stop the daemons and restore a backup of the database',
  });
}
