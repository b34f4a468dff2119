import { isoOrNull, isoTime } from '../../base/time.ts';
import { isSimulatedGroup } from '../../core/group-title.ts';
import type { Hold } from '../../core/model.ts';

export function holdDocument(hold: Hold) {
  return {
    id: hold.id,
    kind: hold.kind,
    state: hold.state,
    rankeeId: hold.rankeeId,
    rankeeName: hold.rankeeName,
    rolesBefore: hold.rolesBefore,
    rolesDuring: hold.rolesDuring,
    beginsAt: isoTime(hold.beginsAt),
    endsAt: isoOrNull(hold.endsAt),
    endedAt: isoOrNull(hold.endedAt),
    awaySince: isoOrNull(hold.awaySince),
    nextTryAt: isoOrNull(hold.nextTryAt),
    reason: hold.reason ?? null,
    code: hold.code ?? null,
    message: hold.message,
    by: hold.by,
    rankerId: hold.rankerId,
    rankerName: hold.rankerName,
    keyId: hold.keyId ?? null,
    placeId: hold.placeId ?? null,
    changeId: hold.changeId,
    returnChangeId: hold.returnChangeId ?? null,
    group: hold.group,
    simulated: isSimulatedGroup(hold.group),
  };
}
