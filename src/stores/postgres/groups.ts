import type { RoleMeaning } from '../../core/role-settings.ts';
import type { GroupStore, KeptRole, ServedGroup } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { withoutNulls } from '../row.ts';
import { appendEvents } from './audit.ts';
import type { Database, Reader } from './engine/database.ts';
import type { Nullable } from './key-row.ts';

export function groupStore(db: Database): GroupStore {
  return {
    async findBaseRole(group) {
      const query = 'SELECT role_id AS "roleId" FROM rankd.base_roles WHERE group_title = @group';
      return (await db.get<{ roleId: number }>(query, { group }))?.roleId;
    },

    async findRoles(group) {
      const query = 'SELECT role_id AS id, name, rank FROM rankd.group_roles WHERE group_title = @group';
      return db.all<KeptRole>(query, { group });
    },

    async keepRoles(group, roles) {
      return db.write(async (transaction) => {
        transaction.run('DELETE FROM rankd.group_roles WHERE group_title = @group', { group });
        for (const { id, name, rank } of roles) {
          transaction.run(
            'INSERT INTO rankd.group_roles (group_title, role_id, name, rank) VALUES (@group, @id, @name, @rank)',
            {
              ...{ group, id, name, rank },
            },
          );
        }
      });
    },

    async findMeanings(group) {
      return meaningsOf(db, group);
    },

    async updateMeanings(group, judge) {
      return db.write(async (transaction) => {
        const { change, events } = allowed(judge(await meaningsOf(transaction, group)));
        transaction.run('DELETE FROM rankd.role_meanings WHERE group_title = @group', { group });
        for (const { roles, ...row } of change)
          transaction.run('INSERT INTO rankd.role_meanings VALUES (@group, @setting, @entry, @roles, @told)', {
            ...row,
            group,
            roles: JSON.stringify(roles),
          });
        await appendEvents(transaction, events);
        return change;
      });
    },

    async keepBaseRole(group, roleId) {
      await db.work(
        `INSERT INTO rankd.base_roles (group_title, role_id) VALUES (@group, @roleId)
         ON CONFLICT (group_title) DO UPDATE SET role_id = excluded.role_id`,
        { group, roleId },
      );
    },

    async findServedGroup() {
      const query = 'SELECT group_title AS "group", config_file AS "configFile" FROM rankd.served_group';
      const row = await db.get<Nullable<ServedGroup>>(query);
      return row && withoutNulls(row);
    },

    async keepServedGroup({ group, configFile }) {
      await db.work(
        `INSERT INTO rankd.served_group (group_title, config_file) VALUES (@group, @configFile)
         ON CONFLICT (one_row) DO UPDATE SET group_title = excluded.group_title, config_file = excluded.config_file`,
        { group, configFile },
      );
    },
  };
}

async function meaningsOf(db: Reader, group: string): Promise<RoleMeaning[]> {
  const query = 'SELECT setting, entry, roles, told FROM rankd.role_meanings WHERE group_title = @group';
  const rows = await db.all<Omit<RoleMeaning, 'roles'> & { roles: string }>(query, { group });
  return rows.map(({ roles, ...row }) => ({ ...row, roles: JSON.parse(roles) }));
}
