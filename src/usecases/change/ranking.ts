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
  /** How long a change may take, in milliseconds. */
  deadlineMs: number;
  turns: MemberTurns;
  /** The ids of open changes that this process is working on at this moment. */
  ownedChangeIds: Set<string>;
  /**
   * When this process last changed each member. The times in the history don't say how long ago that is, if the wall clock was set
   * since.
   */
  recentWrites: LatestWrites;
  /** How far the platform's word counts. */
  trust: PlatformTrust;
}

/**
 * The deadline, in milliseconds, of a change that no game waits for. An earlier change may have to be reconciled first, and for that
 * reads need time to catch up, however short the deadline of requests is.
 */
export function backgroundDeadlineMs({ deadlineMs, platform }: Pick<Ranking, 'deadlineMs' | 'platform'>): number {
  return deadlineMs + platform.readLagMs;
}

/** The share of the deadline that is left for delays which nobody foresees: without it, a change that just began in time would end as unknown. */
const slackShare = 1 / 20;

/** The same call with the deadline by which a change has to be carried out if all goes well. */
export function withSlack({ deadlineMs }: Pick<Ranking, 'deadlineMs'>, call: CallContext): CallContext {
  return { ...call, deadlineAt: call.deadlineAt - deadlineMs * slackShare };
}

/** The same call with the deadline by which the member has to be read, as there must be time for the change after that. */
export function readInTime(app: Pick<Ranking, 'deadlineMs' | 'platform'>, call: CallContext): CallContext {
  const { deadlineAt } = withSlack(app, call);
  return { ...call, deadlineAt: deadlineAt - app.platform.changeMs };
}
