import { exponentialBackOff } from '../../base/time.ts';
import type { Member, RankChange } from '../../core/model.ts';
import { heldIds } from '../../core/role-scheme.ts';
import type { CallContext } from '../../ports/index.ts';
import type { Ranking } from './ranking.ts';

const readAfterMs = exponentialBackOff(250, 2_000);

type ReadContext = Pick<Ranking, 'store' | 'platform' | 'clock' | 'recentWrites'>;

export type MemberReading = ReadContext & Pick<Ranking, 'group'>;

/**
 * Reads the member. Retries until the read shows the roles that rankd's last change left, or until reads can no longer
 * lag, because a plan based on stale roles would be wrong. `written` is rankd's last change to the member.
 */
export async function readMember(
  app: MemberReading,
  userId: number,
  call: CallContext,
  written: Promise<RankChange | undefined> = writtenLast(app, userId),
): Promise<Member | undefined> {
  const last = stillLagging(app, await written);
  const conclusiveAt = app.clock.monotonic() + lagLeftMs(app, last);
  for (let reads = 0; ; reads += 1) {
    const isConclusive = last === undefined || app.clock.monotonic() >= conclusiveAt;
    const member = await app.platform.getMember(userId, call);
    if (isConclusive || member === undefined || (await isShown(app, member, last, call))) return member;
    await app.clock.sleep(readAfterMs(reads), call.signal);
  }
}

/** Returns the time (on `Clock.monotonic()`) after which every read reflects rankd's last change to the member. */
export async function lagEndsAt(app: ReadContext, userId: number): Promise<number> {
  return app.clock.monotonic() + lagLeftMs(app, await writtenLast(app, userId));
}

/**
 * Returns the last change by rankd that may have written the member's roles; `undefined` if there is none, or if the
 * platform's reads never lag.
 */
export async function writtenLast(
  { platform, store }: Pick<ReadContext, 'platform' | 'store'>,
  rankeeId: number,
): Promise<RankChange | undefined> {
  return platform.readLagMs === 0 ? undefined : store.lastWritten(rankeeId);
}

function stillLagging(app: ReadContext, last: RankChange | undefined): RankChange | undefined {
  return lagLeftMs(app, last) > 0 ? last : undefined;
}

/**
 * Returns how long reads may still lag, in milliseconds: at most the platform's read lag, even if the wall clock was
 * set back. `last` is treated as having been made at its `finishedAt`, at this process's last write to the member, or
 * at the last jump of the wall clock, whichever is latest.
 */
function lagLeftMs({ clock, platform, recentWrites }: ReadContext, last: RankChange | undefined): number {
  if (last?.finishedAt === undefined) return 0;
  const writtenAt = recentWrites.of(last.rankeeId) ?? Number.NEGATIVE_INFINITY;
  const { jumpedAt = Number.NEGATIVE_INFINITY } = clock;
  const sinceMs = Math.min(clock.now() - last.finishedAt, clock.monotonic() - Math.max(writtenAt, jumpedAt));
  return Math.max(0, platform.readLagMs - Math.max(0, sinceMs));
}

async function isShown(
  { group }: Pick<Ranking, 'group'>,
  member: Member,
  { rolesAfter }: RankChange,
  call: CallContext,
): Promise<boolean> {
  return heldIds((await group.scheme(call)).roles, member).join() === rolesAfter.join();
}
