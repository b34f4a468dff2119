import type { RoleMeaning } from '../../core/role-settings.ts';
import type { GroupStore, KeptRole, ServedGroup } from '../../ports/index.ts';
import { allowed } from '../allowed.ts';
import { withoutNulls } from '../row.ts';
import { appendEvents } from './audit.ts';
import type { Connection } from './engine/connection.ts';
import type { RowOf } from './engine/row.ts';

export function groupStore(db: Connection): GroupStore {
  return {
    async findBaseRole(group) {
      const query = 'SELECT role_id AS roleId FROM base_roles WHERE group_title = @group';
      return db.get<{ roleId: number }>(query, { group })?.roleId;
    },

    async findRoles(group) {
      return db.all<KeptRole>('SELECT role_id AS id, name, rank FROM group_roles WHERE group_title = @group', {
        group,
      });
    },

    async keepRoles(group, roles) {
      return db.write(() => {
        db.run('DELETE FROM group_roles WHERE group_title = @group', { group });
        for (const { id, name, rank } of roles) {
          db.run('INSERT INTO group_roles (group_title, role_id, name, rank) VALUES (@group, @id, @name, @rank)', {
            ...{ group, id, name, rank },
          });
        }
      });
    },

    async findMeanings(group) {
      return meaningsOf(db, group);
    },

    async updateMeanings(group, judge) {
      return db.write(() => {
        const { change, events } = allowed(judge(meaningsOf(db, group)));
        db.run('DELETE FROM role_meanings WHERE group_title = @group', { group });
        for (const { roles, ...row } of change)
          db.run('INSERT INTO role_meanings VALUES (@group, @setting, @entry, @roles, @told)', {
            ...row,
            group,
            roles: JSON.stringify(roles),
          });
        appendEvents(db, events);
        return change;
      });
    },

    async keepBaseRole(group, roleId) {
      return db.write(() => {
        db.run('INSERT OR REPLACE INTO base_roles (group_title, role_id) VALUES (@group, @roleId)', { group, roleId });
      });
    },

    async findServedGroup() {
      const query = 'SELECT group_title AS "group", config_file AS configFile FROM served_group';
      const row = db.get<RowOf<ServedGroup>>(query);
      return row && withoutNulls(row);
    },

    async keepServedGroup({ group, configFile }) {
      return db.write(() => {
        const query = 'INSERT OR REPLACE INTO served_group VALUES (1, @group, @configFile)';
        db.run(query, { group, configFile });
      });
    },
  };
}

function meaningsOf(db: Connection, group: string): RoleMeaning[] {
  const query = 'SELECT setting, entry, roles, told FROM role_meanings WHERE group_title = @group';
  const rows = db.all<Omit<RoleMeaning, 'roles'> & { roles: string }>(query, { group });
  return rows.map(({ roles, ...row }) => ({ ...row, roles: JSON.parse(roles) }));
}
