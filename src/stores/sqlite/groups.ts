import type { GroupStore } from '../../ports/index.ts';
import type { Connection } from './engine/connection.ts';

export function groupStore(db: Connection): GroupStore {
  return {
    async findBaseRole(group) {
      const query = 'SELECT role_id AS roleId FROM base_roles WHERE group_title = @group';
      return db.get<{ roleId: number }>(query, { group })?.roleId;
    },

    async keepBaseRole(group, roleId) {
      return db.write(() => {
        db.run('INSERT OR REPLACE INTO base_roles (group_title, role_id) VALUES (@group, @roleId)', { group, roleId });
      });
    },
  };
}
