import type { RoleMeaning } from '../../core/role-settings.ts';
import type { GroupStore, ServedGroup, StoredRole } from '../../ports/index.ts';
import { appendEvents } from './audit.ts';
import type { Database, Reader } from './database.ts';
import { allowed, type RowOf, withoutNulls } from './rows.ts';

export function groupStore(db: Database): GroupStore {
  const { schema } = db.sql;
  return {
    async findBaseRole(group) {
      const query = `SELECT role_id AS "roleId" FROM ${schema}.base_roles WHERE group_title = @group`;
      return (await db.get<{ roleId: number }>(query, { group }))?.roleId;
    },

    async findRoles(group) {
      const query = `SELECT role_id AS id, name, rank FROM ${schema}.group_roles WHERE group_title = @group`;
      return db.all<StoredRole>(query, { group });
    },

    async storeRoles(group, roles) {
      const insert = `INSERT INTO ${schema}.group_roles (group_title, role_id, name, rank) VALUES (@group, @id, @name, @rank)`;
      return db.write(async (transaction) => {
        transaction.run(`DELETE FROM ${schema}.group_roles WHERE group_title = @group`, { group });
        for (const { id, name, rank } of roles) transaction.run(insert, { group, id, name, rank });
      });
    },

    async findMeanings(group) {
      return meaningsOf(db, group);
    },

    async updateMeanings(group, judge) {
      const insert = `INSERT INTO ${schema}.role_meanings (group_title, setting, entry, roles, alarm)
                      VALUES (@group, @setting, @entry, @roles, @alarm)`;
      return db.write(async (transaction) => {
        const { change, events } = allowed(judge(await meaningsOf(transaction, group)));
        transaction.run(`DELETE FROM ${schema}.role_meanings WHERE group_title = @group`, { group });
        for (const { roles, ...row } of change)
          transaction.run(insert, { ...row, group, roles: JSON.stringify(roles) });
        await appendEvents(transaction, events);
        return change;
      });
    },

    async storeBaseRole(group, roleId) {
      await db.work(
        `INSERT INTO ${schema}.base_roles (group_title, role_id) VALUES (@group, @roleId)
         ON CONFLICT (group_title) DO UPDATE SET role_id = excluded.role_id`,
        { group, roleId },
      );
    },

    async findServedGroup() {
      const query = `SELECT group_title AS "group", config_file AS "configFile" FROM ${schema}.served_group`;
      const row = await db.get<RowOf<ServedGroup>>(query);
      return row && withoutNulls(row);
    },

    async storeServedGroup({ group, configFile }) {
      await db.work(
        `INSERT INTO ${schema}.served_group (one_row, group_title, config_file) VALUES (true, @group, @configFile)
         ON CONFLICT (one_row) DO UPDATE SET group_title = excluded.group_title, config_file = excluded.config_file`,
        { group, configFile },
      );
    },
  };
}

async function meaningsOf(db: Reader, group: string): Promise<RoleMeaning[]> {
  const query = `SELECT setting, entry, roles, alarm FROM ${db.sql.schema}.role_meanings WHERE group_title = @group`;
  const rows = await db.all<Omit<RoleMeaning, 'roles'> & { roles: string }>(query, { group });
  return rows.map(({ roles, ...row }) => ({ ...row, roles: JSON.parse(roles) }));
}
