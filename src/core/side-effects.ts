import type { Role } from './model.ts';
import type { Step } from './steps.ts';

/** The changes to roles (ids) that no step of a change names. */
export interface SideEffects {
  vanished: number[];
  appeared: number[];
  kept: number[];
}

/**
 * Compares the roles (ids) that a member holds after some of the steps with those before all of them: roles that no
 * step names should be the same. The base role does not count, because a platform may or may not list it. Nor does an
 * earlier role that is missing from `roles`: it is being deleted, or the platform denies that it exists.
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

/** The number of consecutive changes in which unrelated roles vanished, and in which some appeared. */
export interface Streaks {
  vanished: number;
  appeared: number;
}

/** A change ends a streak only if it could have extended it: a member without other roles can't lose any. */
export function streaksAfter(streaks: Streaks, { vanished, appeared, kept }: SideEffects): Streaks {
  return {
    vanished: vanished.length > 0 ? streaks.vanished + 1 : kept.length > 0 ? 0 : streaks.vanished,
    appeared: appeared.length > 0 ? streaks.appeared + 1 : 0,
  };
}
