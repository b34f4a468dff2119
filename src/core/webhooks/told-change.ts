import type { AuditEvent, ChangeState, RankChange } from '../model.ts';

/**
 * A change as it was when an event of the audit told of it, whatever has become of it since: every try sends the same event. The names
 * in it are those of now, so that a person who was forgotten is not told again.
 */
export function changeAt({ action, at, detail }: AuditEvent, change: RankChange): RankChange {
  const state = action.slice('rank.'.length) as ChangeState;
  const { rolesBefore, rolesAfter, code } = detail as unknown as Pick<
    RankChange,
    'rolesBefore' | 'rolesAfter' | 'code'
  >;
  const { finishedAt: _, ...kept } = change;
  const message = change.state === state ? change.message : '';
  return { ...kept, state, code, rolesBefore, rolesAfter, message, ...(state !== 'unknown' && { finishedAt: at }) };
}

/** Which way the member went, by the highest role that the change knows of. */
export function moveOf({ roles = [], rolesBefore, rolesAfter }: RankChange): 'promotion' | 'demotion' | 'sideways' {
  const top = (ids: number[]) => Math.max(0, ...roles.filter(({ id }) => ids.includes(id)).map(({ rank }) => rank));
  const [before, after] = [top(rolesBefore), top(rolesAfter)];
  if (before === after) return 'sideways';
  return after > before ? 'promotion' : 'demotion';
}
