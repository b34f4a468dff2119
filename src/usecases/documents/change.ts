import { isoOrNull, isoTime } from '../../base/time.ts';
import { isSimulatedGroup } from '../../core/group-title.ts';
import type { RankChange } from '../../core/model.ts';
import type { CheckResult, DryRun } from '../change/test-rank.ts';
import type { ChangeView } from '../history/history.ts';
import { hintOf } from './error.ts';

/** A rank change in a list: always the same fields, null if absent or unknown. Times are ISO 8601. */
export function changeDocument({ change, keyName, userName }: ChangeView) {
  return {
    id: change.id,
    state: change.state,
    code: change.code,
    rankeeId: change.rankeeId,
    rankeeName: change.rankeeName,
    userName: userName ?? null,
    rankerId: change.rankerId,
    rankerName: change.rankerName,
    newRankId: askedRank(change),
    roleId: change.roleId ?? null,
    rolesBefore: change.rolesBefore,
    rolesAfter: change.finishedAt === undefined ? null : change.rolesAfter,
    keyId: change.keyId ?? null,
    placeId: change.placeId ?? null,
    command: change.command ?? null,
    requestedAt: isoTime(change.requestedAt),
    finishedAt: isoOrNull(change.finishedAt),
    dryRun: change.dryRun,
    who: whoAsked(change),
    via: wayOf({ change, keyName }),
    keyName: keyName ?? null,
    oldRoleId: change.oldRoleId ?? null,
    roles: change.roles ?? [],
    reason: change.reason ?? null,
    message: change.message,
    by: change.by,
    group: change.group,
    simulated: isSimulatedGroup(change.group),
    hold: holdPartDocument(change),
  };
}

/** The effect of the change on a suspension or a temporary rank of the member; null if there is none. */
function holdPartDocument({ hold }: RankChange) {
  if (hold === undefined) return null;
  const does = { begin: 'begin', renew: 'renew', return: 'end', lift: 'override', undo: 'undo' } as const;
  const isLifted = hold.does === 'return' && hold.as === 'lifted';
  const endsAt = hold.does === 'begin' ? hold.endsAt : undefined;
  return {
    does: isLifted ? 'lift' : does[hold.does],
    kind: hold.does === 'begin' ? hold.kind : null,
    endsAt: isoOrNull(endsAt),
  } as const;
}

/** The same with everything else that an operator may want to know of one change. */
export function detailedChangeDocument(told: ChangeView) {
  const { change } = told;
  return {
    ...changeDocument(told),
    phase: change.phase,
    oldRankName: change.oldRankName ?? null,
    prefix: change.prefix ?? null,
    webhookHost: change.webhookHost ?? null,
    undoOf: change.undoOf ?? null,
    undoId: change.undoId ?? null,
    idempotencyKey: change.idempotencyKey ?? null,
  };
}

/** The requester of the change: the player, or the operator as `ann@host`. */
export function whoAsked({ keyId, by, rankerId, rankerName }: RankChange): string {
  if (keyId === undefined) return by.replace(/^(cli|web):/, '');
  return rankerId === 0 ? rankerName || 'the game' : withId(rankerName, rankerId);
}

/** The way on which the change came: the name of a key, `undo`, or else `page` or `shell`. */
export function wayOf({ change: { keyId, undoId, by }, keyName }: ChangeView): string {
  if (keyId !== undefined) return keyName ?? keyId;
  if (undoId !== undefined) return 'undo';
  return by.startsWith('web:') ? 'page' : 'shell';
}

/** A name with the id, or the id alone if there is no name. */
export function withId(name: string, id: number): string {
  return name === '' ? String(id) : `${name} (${id})`;
}

/** A suspension, or its end, which without these words would look like a demotion or a promotion; `undefined` for other changes. */
export function holdWords({ hold }: RankChange): string | undefined {
  if (hold === undefined) return undefined;
  if (hold.does === 'begin') {
    const until = hold.endsAt === undefined ? '' : ` until ${isoTime(hold.endsAt).slice(0, 16)}Z`;
    return hold.kind === 'temporary' ? `temporary${until}` : `suspended${until}`;
  }
  if (hold.does === 'return') return hold.as === 'lifted' ? 'lifted early' : 'time is up';
  if (hold.does === 'undo') return hold.reopens === undefined ? 'over by undo' : 'in force again by undo';
  return hold.does === 'renew' ? 'came back: still in force' : 'ends the suspension';
}

/** From which role to which, e.g. `Trainee → Officer`; the rank that was asked for, if there was no plan. */
export function changeTitle(change: RankChange): string {
  const { roleId, oldRoleId } = change;
  if (roleId === undefined) return `→ ${askedRank(change) ?? '?'}`;
  const target = roleName(change, roleId);
  return oldRoleId === undefined || oldRoleId === roleId ? target : `${roleName(change, oldRoleId)} → ${target}`;
}

/** The roles by name, each with its id, e.g. `Trainee (70010)`. */
export function namedRoles({ roles = [] }: RankChange, ids: number[]): string {
  const name = (id: number) => roles.find((role) => role.id === id)?.name;
  return ids.map((id) => withId(name(id) ?? '', id)).join(', ');
}

function roleName({ roles = [] }: RankChange, roleId: number): string {
  return roles.find(({ id }) => id === roleId)?.name ?? String(roleId);
}

/** The rank or role that was asked for; null for an undo that was refused before it knew one. */
export function askedRank({ newRankId, undoId }: RankChange): number | null {
  return undoId !== undefined && newRankId === 0 ? null : newRankId;
}

/** Every check of a rank change that was only tried; `steps` is what would be written. */
export function dryRunDocument({ checks, approved }: DryRun) {
  return { allowed: approved !== undefined, steps: approved?.plan.steps ?? [], checks: checks.map(checkDocument) };
}

function checkDocument(result: CheckResult) {
  const { name, state } = result;
  if (result.state !== 'FAIL') return { name, state, detail: result.detail };
  const { code, message } = result.error;
  return { name, state, code, detail: message, try: hintOf(result.error) };
}
