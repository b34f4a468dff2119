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
  /** `undefined` if turned off. */
  breaker: BreakerConfig | undefined;
  suspension: SuspensionConfig;
  /** The time limit for a change. */
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
 * Returns the time limit for a change that no game is waiting for, in milliseconds. It includes the read lag, because
 * an earlier change may need to be reconciled first.
 */
export function backgroundDeadlineMs({ deadlineMs, platform }: Pick<Ranking, 'deadlineMs' | 'platform'>): number {
  return deadlineMs + platform.readLagMs;
}

/**
 * The share of the time limit that is reserved for delays: a change that begins at the last moment must not time out.
 */
const slackShare = 1 / 20;

/** Returns the call with an earlier deadline, to leave time for delays. */
export function withSlack({ deadlineMs }: Pick<Ranking, 'deadlineMs'>, call: CallContext): CallContext {
  return { ...call, deadlineAt: call.deadlineAt - deadlineMs * slackShare };
}

/**
 * Returns the call with an earlier deadline for confirming the target role, to leave time for the writes of an ordinary
 * change, which gives one role and takes one.
 */
export function callForConfirming(app: Pick<Ranking, 'deadlineMs' | 'platform'>, call: CallContext): CallContext {
  const { deadlineAt } = withSlack(app, call);
  return { ...call, deadlineAt: deadlineAt - 2 * app.platform.writeMs };
}

/**
 * Returns the call with an earlier deadline for reading a member. If the read had to wait for a slot, rankd confirms
 * the target role again afterwards; the deadline leaves as much time for that as for a write.
 */
export function callForReading(app: Pick<Ranking, 'deadlineMs' | 'platform'>, call: CallContext): CallContext {
  const { deadlineAt } = callForConfirming(app, call);
  return { ...call, deadlineAt: deadlineAt - app.platform.writeMs };
}

export interface ChangeCaller {
  /** The caller's name in the history and the audit log, e.g. `key:<id>` or `cli:<user>@<host>`. */
  by: string;
  keyId?: string;
  placeId?: number;
  /** The id of the secret used for the request; a key can have several. */
  secretId?: string;
  /** The key's own limits, in addition to the policy's; absent for the operator. */
  rules?: KeyRules;
  /** True for a test key or a dry run: everything is checked, but nothing is written to the platform. */
  dryRun: boolean;
}

export interface ChangeCommand {
  caller: ChangeCaller;
  request: RankRequest;
  /** Requests the next rank up or down from the member's current rank, instead of `newRankId`. */
  step?: Direction;
  /** The number of ranks to move up or down; 1 by default. */
  stepCount?: number;
  /** Adds or removes an extra role, instead of changing the rank. */
  kind?: RoleChangeKind;
  /** Requests the role with this name, instead of `newRankId`. */
  roleName?: string;
  /** Makes the change only if the member currently has this rank. */
  ifRank?: RoleName;
  /** Makes the change only if the member holds the role with this id. */
  holding?: number;
  /** If true, does not change a member who already has the requested rank or a higher one. */
  atLeast?: boolean;
  hold?: RequestedHold;
  /**
   * The id of the list that the change belongs to; `request.command` includes it. A member whom the list has already
   * changed is skipped.
   */
  list?: string;
  idempotency?: Idempotency;
}

/**
 * `suspension` replaces all of the member's roles with `role` or, by default, the configured role. `temporary` takes
 * the requested rank or role back at `endsAt`. `lift` ends the member's hold with this `id`.
 */
export type RequestedHold =
  | { kind: 'suspension'; role?: RoleName; endsAt?: number }
  | { kind: 'temporary'; endsAt?: number }
  | { kind: 'lift'; id: string };

/**
 * SHA-256 hashes (hex) of the request and of the caller's `Idempotency-Key`, which may accidentally contain a secret.
 */
export interface Idempotency {
  key: string;
  fingerprint: string;
}
