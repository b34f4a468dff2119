import type { Ports } from '../../ports/index.ts';

/** A write by a stalled daemon that may have reached the platform late, which leaves the member's roles unknown. */
export interface LateWrite {
  at: number;
  changeId: string;
  rankeeId: number;
}

const maxEvents = 20;
const dayMs = 86_400_000;

/**
 * Returns the late writes of the last 24 hours that an operator must check: those whose change had already ended and
 * was not reopened, and whose member has had no applied change since.
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
