import { RankdError } from '../base/errors.ts';
import { type Caller, invalidKey, refusalOf, wrongMode } from './access.ts';
import { changeEvent, type DomainEvent, keyPaused } from './events.ts';
import { type HoldsOfMember, holdsAfter, refusalOfHold, refusalOfLift, scopeOf } from './holds.ts';
import type { KeyEdit } from './key-changes.ts';
import type { Hold, Key, RankChange } from './model.ts';
import { comebackOf, firstRefusal } from './policy.ts';
import type { PolicyCase, PolicyRule } from './rules/rule.ts';

/**
 * The changes to count since a moment (epoch milliseconds): demotions; or any change of a member who holds, or is to hold, a
 * privileged role or at least a certain rank.
 */
export interface MemberWindow {
  of: 'demotions' | 'privileged' | { fromRank: number };
  since: number;
}

/** How many different members may be changed in a window, by one key and over all keys. */
export interface MemberLimit extends MemberWindow {
  byKey: number;
  byAll: number;
}

/** A member whom a key changed; `at` is when the newest of these changes was asked for (epoch milliseconds). */
export interface ChangedMember {
  rankeeId: number;
  keyId: string;
  at: number;
}

/** What the verdict depends on. All of it is true at the same moment, and stays true until the verdict is carried out. */
export interface BeginFacts {
  /** Epoch milliseconds. */
  now: number;
  /** The member's newest change in any state. */
  latestId?: string | undefined;
  /** The member's open change. */
  openId?: string | undefined;
  holds: HoldsOfMember;
  /** The key, its place and the workspace as they are now; absent for the operator, and if there is no such key. */
  caller?: Caller | undefined;
  /** When the ranker last changed anybody (epoch milliseconds). */
  rankerChangedAt?: number | undefined;
  /**
   * For each window that was asked for, the members whom keys changed, or may yet turn out to have changed, since then and up to
   * now. Open changes count; dry runs and changes that left the roles as they were do not. What is dated later than now does not
   * count either: it was asked for before the clock was set back.
   */
  changedMembers: readonly ChangedMember[][];
}

/** What becomes of a change that is about to begin. */
export type BeginVerdict =
  | { do: 'begin'; holds: Hold[]; events: DomainEvent[] }
  /** Another change of the member came between: what was read of the member may be stale. */
  | { do: 'stale' }
  /** `pause` is there if the key is to be paused with it. */
  | { do: 'refuse'; error: RankdError; pause?: { keyId: string; edit: KeyEdit }; events: DomainEvent[] };

export interface BeginCase {
  /** The intent: what is to be kept before the first write. */
  change: RankChange;
  /** The member's newest change when the member was read. */
  after: string | undefined;
  /** What the policy was asked about, and the rules that are asked again, because much can have happened since. */
  policyCase: PolicyCase;
  recheck: readonly PolicyRule[];
  /** Of the circuit breaker; the facts have the changed members of each, in this order. */
  limits: readonly MemberLimit[];
}

/**
 * Judges whether a change that was approved may begin now. What was withdrawn, narrowed or used up since then counts:
 * a change that they no longer allow does not begin.
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

/** A change that leads where the member is has ended as it begins. */
function stepOf({ state }: RankChange): RankChange['state'] | 'begin' {
  return state === 'pending' ? 'begin' : state;
}

/** Why the member's holds forbid the change; `undefined` if they allow it. */
export function refusalOfHolds(
  change: Pick<RankChange, 'hold' | 'undoId' | 'keyId'>,
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

/** The policy once more, with the key as it is now. Of changes by one ranker that were approved side by side, only the first begins. */
function refusalOfRules({ change, policyCase, recheck }: BeginCase, facts: BeginFacts): RankdError | undefined {
  const { caller, holds, rankerChangedAt, now } = facts;
  const asOfNow: PolicyCase = {
    ...policyCase,
    key: caller?.key ?? policyCase.key,
    ...(change.hold?.does === 'begin' && { comeback: comebackOf(policyCase, holds.open) }),
    sinceRankersLastChangeMs: rankerChangedAt === undefined ? undefined : now - rankerChangedAt,
  };
  return firstRefusal(recheck, asOfNow);
}

/** The refusal that pauses the key, if the change would go beyond a limit of the circuit breaker. */
function tripped({ change, limits }: BeginCase, { caller, changedMembers, now }: BeginFacts): BeginVerdict | undefined {
  const { keyId } = change;
  if (keyId === undefined) return undefined;
  const key = caller?.key ?? { id: keyId, name: keyId, resumedAt: 0 };
  const { resumedAt = 0 } = key;
  for (const [index, limit] of limits.entries()) {
    if (!isCounted(change, limit)) continue;
    const countFrom = resumedAt <= now ? resumedAt : 0; // lifting the pause of a key begins its count anew
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

/** True if the limit counts such changes. */
function isCounted({ demotion, privileged, topRank }: RankChange, { of }: MemberWindow): boolean {
  if (of === 'demotions') return demotion;
  return of === 'privileged' ? privileged : topRank >= of.fromRank;
}

/** How many different members these are, together with the one who is to be changed. */
function countWith(rankeeId: number, members: readonly ChangedMember[]): number {
  return new Set([...members.map((member) => member.rankeeId), rankeeId]).size;
}

function act({ of }: MemberLimit, max: number): string {
  if (of === 'demotions') return `demote more than ${max} different members in a short time (policy.breaker.demotions)`;
  const whom = of === 'privileged' ? 'with a privileged role' : `of rank ${of.fromRank} or above`;
  return `change more than ${max} different members ${whom} in a short time (policy.breaker.high_changes)`;
}

function pause({ id, name }: Pick<Key, 'id' | 'name'>, reason: string, now: number): BeginVerdict {
  const error = new RankdError('key_paused', `This key is now paused: ${reason}.`, {
    hint: `\`rankd history list --key ${name}\` shows its changes; \`rankd key resume ${name}\` lifts the pause`,
    details: { reason: 'paused', keyId: id, keyName: name, pausedNow: true, why: reason },
  });
  const events = [keyPaused({ id, name }, reason, { by: 'daemon', at: now })];
  return { do: 'refuse', error, pause: { keyId: id, edit: { pausedAt: now } }, events };
}
