import { isoOrNull, isoTime } from '../../base/iso-time.ts';
import type { RankChange } from '../../core/model.ts';

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
