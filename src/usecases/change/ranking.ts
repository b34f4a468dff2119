import type { LatestWrites } from '../../base/latest-writes.ts';
import type { BreakerConfig, SuspensionConfig } from '../../config/config.ts';
import type { PolicySettings } from '../../core/policy-names.ts';
import type { CallContext, Ports } from '../../ports/index.ts';
import type { GroupView } from '../group/group-view.ts';
import type { MemberTurns } from './member-turns.ts';
import type { PlatformTrust } from './platform-trust.ts';

/** The context for rank changes: the ports, the owner's rules, and the work in progress in this process. */
export interface Ranking extends Ports {
  group: GroupView;
  policy: PolicySettings;
  /** `undefined` if it is turned off. */
  breaker: BreakerConfig | undefined;
  suspension: SuspensionConfig;
  /** The time limit of a change, in milliseconds. */
  deadlineMs: number;
  turns: MemberTurns;
  /** The ids of open changes that this process is working on. */
  ownedChangeIds: Set<string>;
  /**
   * The times at which this process last changed each member. The times in the history don't show how long ago that is
   * if the wall clock was set since.
   */
  recentWrites: LatestWrites;
  /** The trust in the platform's responses. */
  trust: PlatformTrust;
}

/**
 * The deadline, in milliseconds, of a change that no game waits for. An earlier change may have to be reconciled first,
 * which needs reads to catch up, however short the deadline of requests is.
 */
export function backgroundDeadlineMs({ deadlineMs, platform }: Pick<Ranking, 'deadlineMs' | 'platform'>): number {
  return deadlineMs + platform.readLagMs;
}

/**
 * The share of the deadline that is reserved for unexpected delays: without it, a change that just began in time would
 * end as unknown.
 */
const slackShare = 1 / 20;

/** The same call with the deadline for the change if there are no delays. */
export function withSlack({ deadlineMs }: Pick<Ranking, 'deadlineMs'>, call: CallContext): CallContext {
  return { ...call, deadlineAt: call.deadlineAt - deadlineMs * slackShare };
}

/** The same call with the deadline for the read of the member, which leaves time for the change. */
export function readInTime(app: Pick<Ranking, 'deadlineMs' | 'platform'>, call: CallContext): CallContext {
  const { deadlineAt } = withSlack(app, call);
  return { ...call, deadlineAt: deadlineAt - app.platform.changeMs };
}
