import type { RankRequest } from '../../core/model.ts';
import { present } from '../rank-request.ts';

/** The request of a client that names nobody who asked. */
export function requestOf({
  userId,
  newRankId = 0,
  reason,
}: {
  userId: number;
  newRankId?: number;
  reason?: string | undefined;
}): RankRequest {
  return present({ rankeeId: userId, rankeeName: '', rankerId: 0, rankerName: '', newRankId, reason });
}
