import type { Ports } from '../../ports/index.ts';

/** A stalled daemon's write that may have reached the platform late, so the member's roles are unknown. */
export interface LateWrite {
  at: number;
  changeId: string;
  rankeeId: number;
}

const maxEvents = 20;
const dayMs = 86_400_000;

/**
 * Returns the last day's late writes that an operator must check: the change had ended before the write and was not
 * reopened, and no later change to the member was applied.
 */
export async function unjudgedLateWrites({ store, clock }: Pick<Ports, 'store' | 'clock'>): Promise<LateWrite[]> {
  const events = await store.listAudit({ action: 'rank.late_write', limit: maxEvents });
  const recent = events.filter(({ at }) => at > clock.now() - dayMs);
  const unjudged = await Promise.all(
    recent.map(async ({ at, subject: changeId }) => {
      const change = await store.findChange(changeId);
      if (change === undefined || isLater(change, at)) return [];
      const { latestId = '' } = await store.latestChange(change.rankeeId);
      const latest = await store.findChange(latestId);
      if (latest?.state === 'applied' && isLater(latest, at)) return [];
      return [{ at, changeId, rankeeId: change.rankeeId }];
    }),
  );
  return unjudged.flat();
}

function isLater({ finishedAt = Number.POSITIVE_INFINITY }: { finishedAt?: number }, at: number): boolean {
  return finishedAt > at;
}
