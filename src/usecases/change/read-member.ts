import { doubling } from '../../base/time.ts';
import type { Member, RankChange } from '../../core/model.ts';
import { heldIds } from '../../core/role-scheme.ts';
import type { CallContext } from '../../ports/index.ts';
import type { Ranking } from './ranking.ts';

const readAfterMs = doubling(250, 2_000);

type ReadContext = Pick<Ranking, 'store' | 'platform' | 'clock' | 'recentWrites'>;

/** Needed to read a member. */
export type MemberReading = ReadContext & Pick<Ranking, 'group'>;

/**
 * The member, as read after rankd's own last change: a stale read with the earlier roles would make the next plan
 * wrong. If the roles differ from those that the change left, someone else may have changed them; rankd is sure once
 * reads can no longer lag. `written` is rankd's own last change of the member, if the caller has it.
 */
export async function readMember(
  app: MemberReading,
  userId: number,
  call: CallContext,
  written: Promise<RankChange | undefined> = writtenLast(app, userId),
): Promise<Member | undefined> {
  const last = stillLagging(app, await written);
  const sureAt = app.clock.monotonic() + lagLeftMs(app, last);
  for (let reads = 0; ; reads += 1) {
    const isSure = last === undefined || app.clock.monotonic() >= sureAt;
    const member = await app.platform.getMember(userId, call);
    if (isSure || member === undefined || (await shows(app, member, last, call))) return member;
    await app.clock.sleep(readAfterMs(reads), call.signal);
  }
}

/** The time from which every read shows rankd's last finished change of the member, on `Clock.monotonic()`. */
export async function lagEndsAt(app: ReadContext, userId: number): Promise<number> {
  return app.clock.monotonic() + lagLeftMs(app, await writtenLast(app, userId));
}

/** The last change with possible writes by rankd; `undefined` if reads never lag. */
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
 * The time for which reads may still lag, in milliseconds. If the wall clock was set back, it is never more than the
 * lag. If it was set forward, this process's own last write still counts by the monotonic clock; if a jump was noticed,
 * every change counts as written at that time.
 */
function lagLeftMs({ clock, platform, recentWrites }: ReadContext, last: RankChange | undefined): number {
  if (last?.finishedAt === undefined) return 0;
  const writtenAt = recentWrites.of(last.rankeeId) ?? Number.NEGATIVE_INFINITY;
  const { jumpedAt = Number.NEGATIVE_INFINITY } = clock;
  const sinceMs = Math.min(clock.now() - last.finishedAt, clock.monotonic() - Math.max(writtenAt, jumpedAt));
  return Math.max(0, platform.readLagMs - Math.max(0, sinceMs));
}

async function shows(
  { group }: Pick<Ranking, 'group'>,
  member: Member,
  { rolesAfter }: RankChange,
  call: CallContext,
): Promise<boolean> {
  return heldIds((await group.scheme(call)).roles, member).join() === rolesAfter.join();
}
