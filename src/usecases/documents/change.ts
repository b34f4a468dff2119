import { isoOrNull, isoTime } from '../../base/time.ts';
import type { RankChange } from '../../core/model.ts';
import type { CheckResult, DryRun } from '../change/test-rank.ts';
import { hintOf } from './error.ts';

/** A rank change in a list: always the same fields, null if absent or unknown. Times are ISO 8601. */
export function changeDocument(change: RankChange) {
  return {
    id: change.id,
    state: change.state,
    code: change.code,
    rankeeId: change.rankeeId,
    rankeeName: change.rankeeName,
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
  };
}

/** The same with everything else that an operator may want to know of one change. */
export function detailedChangeDocument(change: RankChange) {
  return {
    ...changeDocument(change),
    message: change.message,
    by: change.by,
    group: change.group,
    phase: change.phase,
    oldRankName: change.oldRankName ?? null,
    prefix: change.prefix ?? null,
    webhookHost: change.webhookHost ?? null,
    undoOf: change.undoOf ?? null,
    undoId: change.undoId ?? null,
    idempotencyKey: change.idempotencyKey ?? null,
  };
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
