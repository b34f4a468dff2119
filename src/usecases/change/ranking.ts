import type { LatestWrites } from '../../base/latest-writes.ts';
import type { BreakerConfig, SuspensionConfig } from '../../config/config.ts';
import type { Direction, KeyRules, RankRequest, RoleChangeKind } from '../../core/model.ts';
import type { PolicySettings } from '../../core/policy-names.ts';
import type { RoleName } from '../../core/role-scheme.ts';
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

/** The caller behind a change, and the caller's limits. */
export interface ChangeCaller {
  /** The name in history and audit: `key:<id>` or `cli:<user>@<host>`. */
  by: string;
  keyId?: string;
  placeId?: number;
  /** The secret of the request's key. */
  secretId?: string;
  /** The key's limits beyond the policy's; absent for the operator. */
  rules?: KeyRules;
  /** True for a test key: everything is checked and answered, but nothing is written. */
  dryRun: boolean;
}

export interface ChangeCommand {
  caller: ChangeCaller;
  request: RankRequest;
  /** Requests the next rank up or down from the member's rank at that time, instead of `newRankId`. */
  step?: Direction;
  /** The number of ranks up or down; 1 by default. */
  stepCount?: number;
  /** Requests one extra role, instead of a rank. */
  kind?: RoleChangeKind;
  /** Requests the role with this name, instead of `newRankId`. */
  roleName?: string;
  /** The change applies only if this is the member's rank. */
  ifRank?: RoleName;
  /** The change applies only if the member holds the role with this id. */
  holding?: number;
  /** A member who already has this rank or a higher one is not changed. */
  atLeast?: boolean;
  /** The change begins a hold, or ends one. */
  hold?: HoldAsked;
  /**
   * The list of members that the change belongs to. Each of its changes has this text in `command`, and a member whom
   * the list has reached is not changed again.
   */
  list?: string;
  idempotency?: Idempotency;
}

/**
 * `suspension`: the member gets `role`, or the configured one, instead of `newRankId`, and loses all others.
 * `temporary`: the requested rank is taken back at its end. `lift`: the change ends the member's hold `id`.
 */
export type HoldAsked =
  | { kind: 'suspension'; role?: RoleName; endsAt?: number }
  | { kind: 'temporary'; endsAt?: number }
  | { kind: 'lift'; id: string };

/**
 * The SHA-256 (hex) of the caller's `Idempotency-Key`, which may be a secret by mistake, and of the request with it.
 */
export interface Idempotency {
  key: string;
  fingerprint: string;
}
