import type { RankChange } from '../../core/model.ts';
import type { OpenChange } from '../../ports/index.ts';
import { callWithin } from '../../ports/platform.ts';
import { backgroundDeadlineMs, type Ranking } from './ranking.ts';
import { isAbandoned, reconcileChange } from './reconcile-change.ts';

export interface RecoveryRound {
  /** Called with each change that could not be reconciled at the first try. */
  report: (change: RankChange, error: unknown) => void;
  stop: AbortSignal;
  /** The work in progress and the earlier tries of all rounds. Rounds may overlap. */
  tries: RecoveryTries;
}

/** By the ids of changes: the running ones, and the time (`Clock.monotonic()`) of each one's last try or failure. */
export interface RecoveryTries {
  underWay: Set<string>;
  last: Map<string, number>;
}

/** Reconciling a change takes one read of the member, or a second one once reads no longer lag. */
const looksEach = 2;
/** The minimum number of concurrent tries, however little is left of the platform's budget. */
const fewest = 5;
/**
 * For this long, a change that this node could not complete is left to other nodes, which may reach the platform. It is
 * two of their rounds.
 */
const standBackMs = 5_000;

/**
 * One round: tries to reconcile abandoned changes, as many concurrently as the platform has room for, longest waiting
 * first.
 */
export async function recoverChanges(app: Ranking, { report, stop, tries }: RecoveryRound): Promise<void> {
  const { underWay, last } = tries;
  const open = await app.store.openChanges();
  forgetFinished(last, open);
  const abandoned = open
    .filter((one) => isAbandoned(app, one) && !underWay.has(one.change.id) && !isLeftToOthers(app, one, last))
    .map(({ change }) => change)
    .sort((a, b) => (last.get(a.id) ?? 0) - (last.get(b.id) ?? 0))
    .slice(0, roomFor(app, underWay.size));
  await Promise.all(
    abandoned.map(async (change) => {
      const isFirst = !last.has(change.id);
      underWay.add(change.id);
      last.set(change.id, app.clock.monotonic());
      await recover(app, change, stop).catch((error) => {
        last.set(change.id, app.clock.monotonic());
        if (isFirst) report(change, error);
      });
      underWay.delete(change.id);
    }),
  );
}

/** True if a change is pending without a holder: its node is gone. */
export async function wasLeftBehind({ store }: Pick<Ranking, 'store'>): Promise<boolean> {
  const open = await store.openChanges();
  return open.some(({ change, holder }) => change.state === 'pending' && holder === 'none');
}

function isLeftToOthers(
  { store, clock, recentWrites }: Ranking,
  { change: { id, rankeeId }, holder }: OpenChange,
  last: RecoveryTries['last'],
): boolean {
  if (holder === 'this' || store.nodes === undefined || store.nodes.isAlone) return false;
  const failedAt = Math.max(...[last.get(id), recentWrites.of(rankeeId)].map((at) => at ?? Number.NEGATIVE_INFINITY));
  return clock.monotonic() - failedAt < standBackMs;
}

function forgetFinished(last: RecoveryTries['last'], open: OpenChange[]): void {
  const ids = new Set(open.map(({ change }) => change.id));
  for (const id of last.keys()) if (!ids.has(id)) last.delete(id);
}

/** The number of further tries that may begin. Half of the budget for reading members is reserved for callers. */
function roomFor({ platform }: Ranking, underWay: number): number {
  const looks = platform.pace().find(({ operation }) => operation === 'memberships');
  if (looks === undefined) return Number.POSITIVE_INFINITY;
  const spare = looks.left - looks.waiting - looks.limit / 2 - underWay; // each running try still needs a read
  return Math.max(fewest - underWay, Math.floor(spare / looksEach), 0);
}

async function recover(app: Ranking, change: RankChange, stop: AbortSignal): Promise<void> {
  using own = callWithin(app.clock, backgroundDeadlineMs(app), 'recovery');
  const call = { ...own, signal: AbortSignal.any([own.signal, stop]) };
  using turn = app.turns.arrive(change.rankeeId, call.lane);
  await turn.comes(call.signal);
  await reconcileChange(app, change, call);
}
