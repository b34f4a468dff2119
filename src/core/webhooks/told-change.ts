import type { AuditEvent, ChangeState, RankChange } from '../model.ts';

/**
 * A change as it was at the time of an audit event, whatever its state is now: every try sends the same event. It has
 * the present names, so that a forgotten person does not appear again.
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

/** The direction of the member's move, by the highest role in the change. */
export function moveOf({ roles = [], rolesBefore, rolesAfter }: RankChange): 'promotion' | 'demotion' | 'sideways' {
  const top = (ids: number[]) => Math.max(0, ...roles.filter(({ id }) => ids.includes(id)).map(({ rank }) => rank));
  const [before, after] = [top(rolesBefore), top(rolesAfter)];
  if (before === after) return 'sideways';
  return after > before ? 'promotion' : 'demotion';
}
