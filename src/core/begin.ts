import { RankdError } from '../base/errors.ts';
import { type Caller, invalidKey, refusalOf, wrongMode } from './access.ts';
import { changeEvent, type DomainEvent, keyPaused } from './events.ts';
import { type HoldsOfMember, holdsAfter, refusalOfHold, refusalOfLift, scopeOf } from './holds.ts';
import type { KeyEdit } from './key-changes.ts';
import type { Hold, Key, RankChange } from './model.ts';
import { earlyReturnOf, firstRefusal } from './policy.ts';
import type { PolicyCase, PolicyRule } from './rules/rule.ts';

/**
 * Selects the changes that a limit counts: demotions, or changes to members who have or would get a privileged role or
 * a rank of at least `fromRank`. `since`: epoch milliseconds.
 */
export interface MemberWindow {
  of: 'demotions' | 'privileged' | { fromRank: number };
  since: number;
}

/**
 * The maximum number of different members that one key (`byKey`) and all keys together (`byAll`) can change in a
 * window.
 */
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

/**
 * The facts that the verdict depends on. The transaction that reads them also stores the verdict, so they can't change
 * in between.
 */
export interface BeginFacts {
  /** Epoch milliseconds. */
  now: number;
  /** The id of the member's newest change, in any state. */
  latestId?: string | undefined;
  openId?: string | undefined;
  holds: HoldsOfMember;
  /**
   * The current state of the key, its whitelist entry and the workspace; absent for the operator, or if the key does
   * not exist.
   */
  caller?: Caller | undefined;
  /**
   * The time (epoch milliseconds) when the ranker's last change that may have altered roles ended or, while it is open,
   * was requested.
   */
  rankerChangedAt?: number | undefined;
  /**
   * For each limit, the members whom keys have changed within its window. Open changes count. Dry runs don't, and
   * neither do changes dated in the future, which were requested before the clock was set back. Of the changes that
   * left the roles as they were, only suspensions count.
   */
  changedMembers: readonly ChangedMember[][];
}

export type BeginVerdict =
  | { do: 'begin'; holds: Hold[]; events: DomainEvent[] }
  /** A different change to the member was made or reopened meanwhile, so the roles that were read may be stale. */
  | { do: 'stale' }
  /** `pause` is set if the refusal also pauses the key. */
  | { do: 'refuse'; error: RankdError; pause?: { keyId: string; edit: KeyEdit }; events: DomainEvent[] };

export interface BeginCase {
  /** The record of the intended change, to store before the first write to the platform. */
  change: RankChange;
  /** The id of the member's newest change when rankd read the member. */
  after: string | undefined;
  /** The input to the policy check that approved the change. */
  policyCase: PolicyCase;
  /** The rules to check again, because their input may have changed since. */
  recheck: readonly PolicyRule[];
  /** The circuit breaker's limits, in the same order as `changedMembers` in the facts. */
  limits: readonly MemberLimit[];
}

/**
 * Decides whether an approved change can begin now. Refuses it if the permission for it was withdrawn, narrowed or used
 * up since the approval.
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

/** Returns the change's first step for the audit log. A change that needs no write has already ended at this point. */
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
 * Checks the policy again with the current facts. If several changes by the same ranker were approved concurrently, the
 * ranker cooldown refuses all but the first.
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
    const countFrom = resumedAt <= now ? resumedAt : 0; // changes from before the key was resumed don't count
    const members = (changedMembers[index] ?? []).filter(({ at }) => at >= countFrom);
    const byAll = countWith(change.rankeeId, members);
    const byKey = countWith(
      change.rankeeId,
      members.filter((member) => member.keyId === keyId),
    );
    if (byKey > limit.byKey) return pause(key, `it was about to ${describeLimit(limit, limit.byKey)}`, now);
    if (byAll > limit.byAll)
      return pause(key, `all keys together were about to ${describeLimit(limit, limit.byAll)}`, now);
  }
  return undefined;
}

function isCounted({ demotion, privileged, topRank }: RankChange, { of }: MemberWindow): boolean {
  if (of === 'demotions') return demotion;
  return of === 'privileged' ? privileged : topRank >= of.fromRank;
}

function countWith(rankeeId: number, members: readonly ChangedMember[]): number {
  return new Set([...members.map((member) => member.rankeeId), rankeeId]).size;
}

function describeLimit({ of }: MemberLimit, max: number): string {
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
