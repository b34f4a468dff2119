import type { Role } from './model.ts';
import type { Step } from './steps.ts';

/** What became of the roles (ids) that the steps of a change do not name. */
export interface SideEffects {
  vanished: number[];
  appeared: number[];
  kept: number[];
}

/**
 * Compares the roles (ids) that a member holds after some of the steps with those held before all of them: what the steps do not name
 * should be the same. The base role does not count, because a platform may list it or not. Nor does a role held before that is none of
 * `roles`: it is being deleted, or the platform denies that it exists.
 */
export function sideEffects(
  roles: Role[],
  steps: Step[],
  { before, after }: { before: number[]; after: number[] },
): SideEffects {
  const unlisted = roles
    .filter(({ kind }) => kind === 'base' || kind === 'unclear' || kind === 'guest')
    .map(({ id }) => id);
  const unknown = before.filter((id) => !roles.some((role) => role.id === id));
  const expected = new Set([...steps.map(({ roleId }) => roleId), ...unlisted, ...unknown]);
  const others = (ids: number[]) => ids.filter((id) => !expected.has(id));
  return {
    vanished: others(before).filter((id) => !after.includes(id)),
    appeared: others(after).filter((id) => !before.includes(id)),
    kept: others(before).filter((id) => after.includes(id)),
  };
}

/** How many changes in a row made roles vanish that nobody named, and how many made some appear. */
export interface Streaks {
  vanished: number;
  appeared: number;
}

/** A change ends a streak only if it could have gone on: of a member without other roles, none can vanish. */
export function streaksAfter(streaks: Streaks, { vanished, appeared, kept }: SideEffects): Streaks {
  return {
    vanished: vanished.length > 0 ? streaks.vanished + 1 : kept.length > 0 ? 0 : streaks.vanished,
    appeared: appeared.length > 0 ? streaks.appeared + 1 : 0,
  };
}
