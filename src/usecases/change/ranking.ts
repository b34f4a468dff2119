import type { LatestWrites } from '../../base/latest-writes.ts';
import type { BreakerConfig, SuspensionConfig } from '../../config/config.ts';
import type { Direction, KeyRules, RankRequest, RoleChangeKind } from '../../core/model.ts';
import type { PolicySettings } from '../../core/policy-names.ts';
import type { RoleName } from '../../core/role-scheme.ts';
import type { CallContext, Ports } from '../../ports/index.ts';
import type { GroupView } from '../group/group-view.ts';
import type { MemberTurns } from './member-turns.ts';
import type { PlatformTrust } from './platform-trust.ts';

/** The context for rank changes: the ports, the configured rules, and the work in progress in this process. */
export interface Ranking extends Ports {
  group: GroupView;
  policy: PolicySettings;
  /** `undefined` if it is turned off. */
  breaker: BreakerConfig | undefined;
  suspension: SuspensionConfig;
  /** The time limit for a change, in milliseconds. */
  deadlineMs: number;
  turns: MemberTurns;
  /** The ids of open changes that this process is working on. */
  ownedChangeIds: Set<string>;
  /**
   * The time of this process's last write to each member, on the monotonic clock, because the wall clock may be
   * adjusted.
   */
  recentWrites: LatestWrites;
  trust: PlatformTrust;
}

/**
 * Returns the time limit for a change that no game waits for, in milliseconds. It includes the read lag, because an
 * earlier change may need to be reconciled first.
 */
export function backgroundDeadlineMs({ deadlineMs, platform }: Pick<Ranking, 'deadlineMs' | 'platform'>): number {
  return deadlineMs + platform.readLagMs;
}

/** The share of the time limit that is reserved for delays: a change that begins just in time must not time out. */
const slackShare = 1 / 20;

/** Returns the call with an earlier deadline, which leaves time for delays. */
export function withSlack({ deadlineMs }: Pick<Ranking, 'deadlineMs'>, call: CallContext): CallContext {
  return { ...call, deadlineAt: call.deadlineAt - deadlineMs * slackShare };
}

/** Returns the call with the deadline for reading the member, which leaves time for the writes. */
export function readInTime(app: Pick<Ranking, 'deadlineMs' | 'platform'>, call: CallContext): CallContext {
  const { deadlineAt } = withSlack(app, call);
  return { ...call, deadlineAt: deadlineAt - app.platform.changeMs };
}

/** The caller behind a change, and the caller's limits. */
export interface ChangeCaller {
  /** The name in the history and the audit log, e.g. `key:<id>` or `cli:<user>@<host>`. */
  by: string;
  keyId?: string;
  placeId?: number;
  /** The id of the key's secret that the request used. */
  secretId?: string;
  /** The key's limits beyond the policy's; absent for the operator. */
  rules?: KeyRules;
  /** True for a test key or a dry run: everything is checked, but nothing is written to the platform. */
  dryRun: boolean;
}

export interface ChangeCommand {
  caller: ChangeCaller;
  request: RankRequest;
  /** Requests the next rank up or down from the member's current rank, instead of `newRankId`. */
  step?: Direction;
  /** The number of ranks up or down; 1 by default. */
  stepCount?: number;
  /** Requests one extra role, instead of a rank. */
  kind?: RoleChangeKind;
  /** Requests the role with this name, instead of `newRankId`. */
  roleName?: string;
  /** The change is made only if this is the member's rank. */
  ifRank?: RoleName;
  /** The change is made only if the member holds the role with this id. */
  holding?: number;
  /** If true, a member who already has the requested rank or a higher one is not changed. */
  atLeast?: boolean;
  /** The change begins a hold, or ends one. */
  hold?: HoldAsked;
  /**
   * The id of the list that the change belongs to; `command` includes it. A member whom the list has already changed is
   * skipped.
   */
  list?: string;
  idempotency?: Idempotency;
}

/**
 * `suspension`: the member loses all roles, and gets `role` or the configured one instead of `newRankId`. `temporary`:
 * the requested rank is taken back at `endsAt`. `lift`: the change ends the member's hold `id`.
 */
export type HoldAsked =
  | { kind: 'suspension'; role?: RoleName; endsAt?: number }
  | { kind: 'temporary'; endsAt?: number }
  | { kind: 'lift'; id: string };

/**
 * SHA-256 hashes (hex) of the caller's `Idempotency-Key`, which may contain a secret by mistake, and of the request.
 */
export interface Idempotency {
  key: string;
  fingerprint: string;
}
