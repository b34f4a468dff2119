import type { Role } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';

/** Stores the roles of a group each time they differ from the stored ones. */
export function rolesKeeper({ store }: Pick<Ports, 'store'>, group: string): (roles: Role[]) => Promise<void> {
  let kept: string | undefined;
  return async (roles) => {
    const titles = roles.map(({ id, name, rank }) => ({ id, name, rank })).sort((one, other) => one.id - other.id);
    const text = JSON.stringify(titles);
    kept ??= JSON.stringify((await store.findRoles(group)).sort((one, other) => one.id - other.id));
    if (text === kept) return;
    await store.keepRoles(group, titles);
    kept = text;
  };
}
