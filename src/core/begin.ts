import { RankdError } from '../base/errors.ts';
import { type Caller, invalidKey, refusalOf, wrongMode } from './access.ts';
import { changeEvent, type DomainEvent, keyPaused } from './events.ts';
import { type HoldsOfMember, holdsAfter, refusalOfHold, refusalOfLift, scopeOf } from './holds.ts';
import type { KeyEdit } from './key-changes.ts';
import type { Hold, Key, RankChange } from './model.ts';
import { earlyReturnOf, firstRefusal } from './policy.ts';
import type { PolicyCase, PolicyRule } from './rules/rule.ts';

/**
 * Selects the changes to count: demotions, or changes to a member who holds, or would hold, a privileged role or at
 * least a certain rank. `since` is in epoch milliseconds.
 */
export interface MemberWindow {
  of: 'demotions' | 'privileged' | { fromRank: number };
  since: number;
}

/** The numbers of different members that one key, and all keys together, may change in a window. */
export interface MemberLimit extends MemberWindow {
  byKey: number;
  byAll: number;
}

/** A member whom a key has changed. `at`: the time of the newest request (epoch milliseconds). */
export interface ChangedMember {
  rankeeId: number;
  keyId: string;
  at: number;
}

/** The facts for the verdict, from one transaction: they stay true until the verdict is stored. */
export interface BeginFacts {
  /** Epoch milliseconds. */
  now: number;
  /** The member's newest change in any state. */
  latestId?: string | undefined;
  /** The member's open change. */
  openId?: string | undefined;
  holds: HoldsOfMember;
  /** The key, its place and the workspace as they are now; absent for the operator, or if the key does not exist. */
  caller?: Caller | undefined;
  /** The time of the ranker's last change (epoch milliseconds). */
  rankerChangedAt?: number | undefined;
  /**
   * For each requested window, the members whom keys have changed since the window began. Includes open changes.
   * Excludes dry runs, changes other than suspensions that left the roles as they were, and changes dated in the
   * future, which were requested before the clock was set back.
   */
  changedMembers: readonly ChangedMember[][];
}

export type BeginVerdict =
  | { do: 'begin'; holds: Hold[]; events: DomainEvent[] }
  /** A different change to the member was made in the meantime, so the roles that were read may be stale. */
  | { do: 'stale' }
  /** `pause` is set if the key is paused as well. */
  | { do: 'refuse'; error: RankdError; pause?: { keyId: string; edit: KeyEdit }; events: DomainEvent[] };

export interface BeginCase {
  /** The intent: the record to store before the first write. */
  change: RankChange;
  /** The member's newest change when the member was read. */
  after: string | undefined;
  /** The input to the policy check that approved the change. */
  policyCase: PolicyCase;
  /** The rules to recheck, because that input may have changed. */
  recheck: readonly PolicyRule[];
  /** The circuit breaker's limits. The facts list each limit's changed members in the same order. */
  limits: readonly MemberLimit[];
}

/**
 * Decides whether an approved change may begin now. Refuses it if a permission was withdrawn, narrowed or used up since
 * the approval.
 */
export function judgeBegin(begin: BeginCase, facts: BeginFacts): BeginVerdict {
  const { change, after } = begin;
  if (facts.openId !== undefined || facts.latestId !== after) return { do: 'stale' };
  const error = refusalOfAccess(change, facts) ?? refusalOfHolds(change, facts.holds) ?? refusalOfRules(begin, facts);
  if (error !== undefined) return { do: 'refuse', error, events: [] };
  return tripped(begin, facts) ?? allowed(change, facts);
}

function allowed(change: RankChange, { holds: of, now }: BeginFacts): BeginVerdict {
  const { holds, events } = holdsAfter(change, of, now);
  return { do: 'begin', holds, events: [changeEvent(change, stepOf(change), now), ...events] };
}

/** Returns a change's first step for the audit log. A change that needs no write has already ended. */
function stepOf({ state }: RankChange): RankChange['state'] | 'begin' {
  return state === 'pending' ? 'begin' : state;
}

export function refusalOfHolds(
  change: Pick<RankChange, 'hold' | 'undoId' | 'keyId' | 'kind'>,
  { open, own }: HoldsOfMember,
): RankdError | undefined {
  const { hold, keyId } = change;
  const endsHold = hold?.does === 'return' || hold?.does === 'lift';
  return endsHold && own !== undefined ? refusalOfLift(own, keyId) : refusalOfHold(change, open);
}

function refusalOfAccess(change: RankChange, { caller, now }: BeginFacts): RankdError | undefined {
  const { keyId, placeId, dryRun, group } = change;
  if (keyId === undefined) return undefined;
  if (caller === undefined) return invalidKey({ reason: 'unknown' }, 'rankd key create NAME');
  if (!dryRun && caller.key.mode === 'test') return wrongMode(caller.key);
  return refusalOf(caller, { scope: scopeOf(change), group, placeId, now });
}

/**
 * Rechecks the policy with the current facts. If one ranker's changes were approved concurrently, the ranker cooldown
 * refuses all but the first.
 */
function refusalOfRules({ change, policyCase, recheck }: BeginCase, facts: BeginFacts): RankdError | undefined {
  const { caller, holds, rankerChangedAt, now } = facts;
  const asOfNow: PolicyCase = {
    ...policyCase,
    key: caller?.key ?? policyCase.key,
    ...(change.hold?.does === 'begin' && { earlyReturn: earlyReturnOf(policyCase, holds.open) }),
    sinceRankersLastChangeMs: rankerChangedAt === undefined ? undefined : now - rankerChangedAt,
  };
  return firstRefusal(recheck, asOfNow);
}

/** Returns the refusal that pauses the key, if the change would exceed one of the circuit breaker's limits. */
function tripped({ change, limits }: BeginCase, { caller, changedMembers, now }: BeginFacts): BeginVerdict | undefined {
  const { keyId } = change;
  if (keyId === undefined) return undefined;
  const key = caller?.key ?? { id: keyId, name: keyId, resumedAt: 0 };
  const { resumedAt = 0 } = key;
  for (const [index, limit] of limits.entries()) {
    if (!isCounted(change, limit)) continue;
    const countFrom = resumedAt <= now ? resumedAt : 0; // after a resume, only later changes count
    const members = (changedMembers[index] ?? []).filter(({ at }) => at >= countFrom);
    const byAll = countWith(change.rankeeId, members);
    const byKey = countWith(
      change.rankeeId,
      members.filter((member) => member.keyId === keyId),
    );
    if (byKey > limit.byKey) return pause(key, `it was about to ${act(limit, limit.byKey)}`, now);
    if (byAll > limit.byAll) return pause(key, `all keys together were about to ${act(limit, limit.byAll)}`, now);
  }
  return undefined;
}

function isCounted({ demotion, privileged, topRank }: RankChange, { of }: MemberWindow): boolean {
  if (of === 'demotions') return demotion;
  return of === 'privileged' ? privileged : topRank >= of.fromRank;
}

/** Returns the number of different members, including the one to be changed. */
function countWith(rankeeId: number, members: readonly ChangedMember[]): number {
  return new Set([...members.map((member) => member.rankeeId), rankeeId]).size;
}

function act({ of }: MemberLimit, max: number): string {
  if (of === 'demotions') return `demote more than ${max} different members in a short time (policy.breaker.demotions)`;
  const which = of === 'privileged' ? 'a privileged role' : `rank ${of.fromRank} or above`;
  return `change more than ${max} different members who have or would get ${which} in a short time (policy.breaker.high_changes)`;
}

function pause({ id, name }: Pick<Key, 'id' | 'name'>, reason: string, now: number): BeginVerdict {
  const error = new RankdError('key_paused', `This key is now paused: ${reason}.`, {
    hint: `\`rankd history list --key ${name}\` shows its changes; \`rankd key resume ${name}\` lifts the pause`,
    details: { reason: 'paused', keyId: id, keyName: name, pausedNow: true, why: reason },
  });
  const events = [keyPaused({ id, name }, reason, { by: 'daemon', at: now })];
  return { do: 'refuse', error, pause: { keyId: id, edit: { pausedAt: now } }, events };
}
