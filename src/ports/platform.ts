import { type Clock, deadlineIn } from '../base/clock.ts';
import { RankdError } from '../base/errors.ts';
import type { Surprise } from '../base/surprises.ts';
import type { Credential, Group, Member, NamedUser, Place, Role } from '../core/model.ts';

/**
 * The group on the platform. All calls are idempotent.
 *
 * Every call can throw `platform_busy` (no room in the budget before the deadline), `platform_unavailable`,
 * `platform_credential` and `platform_rejected`; the simulated group can also throw `store_unavailable`. A call whose
 * signal is aborted before it is sent throws `platform_busy` or `platform_unavailable`. A write can also throw
 * `member_not_found`, `above_acting_account` and `outcome_unknown`. After `outcome_unknown`, the write may have been
 * applied; after any other error, it was either not sent or refused by the platform.
 */
export interface Platform {
  /** The longest time after a write during which a read can still return the previous state, in milliseconds. */
  readonly readLagMs: number;
  /**
   * The estimated duration of one write, in milliseconds. A change with too little time left for its writes does not
   * read its member, and does not begin.
   */
  readonly writeMs: number;
  group(call: CallContext): Promise<Group>;
  /**
   * Returns all listed roles and the base role, ascending by rank. Within a rank, the base role comes first, then the
   * others by id. If the base role is unknown, the candidates for it have the kind `unclear`.
   */
  roles(call: CallContext): Promise<Role[]>;
  /** Returns a role, even one that `roles` omits, or `undefined` if the group has no such role. */
  role(roleId: number, call: CallContext): Promise<Omit<Role, 'kind'> | undefined>;
  /** Returns the member, never from a cache, or `undefined` if the user is not in the group. */
  getMember(userId: number, call: CallContext): Promise<Member | undefined>;
  /**
   * Returns a page of at most 100 member ids, in no particular order. If `list.roleId` is set, the page contains only
   * members with that role. If members join or leave between two pages, a member can be listed twice or not at all.
   */
  membersWith(list: MemberList, call: CallContext): Promise<Page<number>>;
  /**
   * Reserves room for these writes in the platform's budget, so that all of them can start before the deadline. Sends
   * no requests. If there is not enough room for all of them, reserves nothing and throws `platform_busy`.
   */
  reserve(kinds: WriteKind[], call: CallContext): Promise<Reservation>;
  /**
   * Gives a role; changes nothing if the member already has it. Resolves with the resulting member, or with `undefined`
   * if the platform's response does not include the member.
   */
  assignRole(change: RoleWrite, call: CallContext): Promise<Member | undefined>;
  /** Takes a role away; changes nothing if the member does not have it. Resolves like `assignRole`. */
  unassignRole(change: RoleWrite, call: CallContext): Promise<Member | undefined>;
  /**
   * Finds a user by current or former name. The result contains the current name. Needs no credential. Results are
   * cached for a while.
   */
  findUser(name: string, call: CallContext): Promise<NamedUser | undefined>;
  userName(userId: number, call: CallContext): Promise<string | undefined>;
  /**
   * Returns the places of an experience, including its start place. Needs no credential. Throws `platform_rejected` if
   * the platform does not list them.
   */
  placesOf(universeId: number, call: CallContext): Promise<Place[]>;
  /** Returns the platform's report on the credential, never from a cache. */
  checkCredential(call: CallContext): Promise<Credential>;
  /** Returns one entry per operation that has a budget; empty if the platform has no limits. */
  pace(): Pace[];
  surprises(): Surprise[];
  reachability(): Reachability;
  close(): Promise<void>;
}

export interface MemberList {
  /** `undefined` lists all members. */
  roleId: number | undefined;
  /** The `next` cursor of the previous page; absent for the first page. */
  after?: string | undefined;
}

export interface Page<T> {
  /** Can be empty even if more pages follow. */
  items: T[];
  /** The cursor for the next page; absent on the last page. */
  next?: string | undefined;
}

export interface Reachability {
  /** Unreachable hosts. `since` is the time from which the host counts as unreachable (epoch milliseconds). */
  unreached: Array<{ host: string; error: RankdError; since: number }>;
  /** Reachable hosts. A host that has not been called recently can be in neither list. */
  reached: string[];
  /** This machine's clock minus the platform's; absent if no response has reported the platform's time. */
  clockAheadMs?: number | undefined;
}

/** The entry in `surprises` for a role list that omits the base role. */
export const baseRoleOmitted = 'the list omits the base role';

export type WriteKind = 'assign' | 'unassign';

/**
 * The result of one check against the real platform. `differs`: the platform does not behave as rankd expects, and
 * rankd may be unable to cope, so an operator should investigate.
 */
export interface LiveFinding {
  check: string;
  result: 'ok' | 'differs' | 'FAIL';
  /** The differences, described by path and type but without any values, so that an operator can share them. */
  details: string[];
}

export interface Pace {
  operation: string;
  /** Calls per window. */
  limit: number;
  /** Calls that could start now, minus the calls that are waiting on other nodes with the same budget. */
  left: number;
  waiting: number;
  admitted: number;
  /** The total time that calls and reservations have waited. */
  waitedMs: number;
}

export interface RoleWrite {
  userId: number;
  roleId: number;
}

export interface CallContext {
  signal: AbortSignal;
  /** The time after which the caller no longer needs the result (on `Clock.monotonic()`). */
  deadlineAt: number;
  /**
   * Calls in the same lane are admitted in order of arrival, after any calls with a reserved slot. The lanes share the
   * platform's budget fairly.
   */
  lane: string;
  reservation?: Reservation;
  /** Called before each attempt to send a write. If it rejects, the attempt is not sent, and the call fails. */
  fence?: () => Promise<WriteLease>;
  /**
   * True if the caller will read the member after a refused write. Retries of a rate-limited write then stop early
   * enough to leave time for that read.
   */
  readsAfter?: boolean;
}

export interface WriteLease {
  /** Returns `Infinity` if no other node can take over the write. */
  leftMs(): number;
  /** Records that the write may have been sent too late. */
  noteLate(): void;
}

/** The lease for a write that no other node can take over. */
export const unboundedLease: WriteLease = { leftMs: () => Number.POSITIVE_INFINITY, noteLate: () => undefined };

/** Reserved slots in the platform's budget. Each write uses up one; disposing of the reservation releases the rest. */
export type Reservation = Disposable;

/** Returns a context for calls that time out after `ms` milliseconds. Dispose of it to release the timer. */
export function callWithin(clock: Clock, ms: number, lane: string): CallContext & Disposable {
  const { at, ...deadline } = deadlineIn(clock, ms);
  return { ...deadline, deadlineAt: at, lane };
}

/**
 * Returns a context with an earlier deadline, for an optional step: it has only `share` (0 to 1) of the call's
 * remaining time.
 */
export function withShare(call: CallContext, { clock, share }: { clock: Clock; share: number }): CallContext {
  const now = clock.monotonic();
  return { ...call, deadlineAt: now + (call.deadlineAt - now) * share };
}

/** The number of consecutive empty pages after which a list is considered broken. */
const maxEmptyPages = 3;

/**
 * Yields the pages of a list, each with its cursor, starting at the cursor `first`. Stops after the last page, and
 * before a cursor that it has already used. Throws `platform_rejected` after `maxEmptyPages` consecutive empty pages.
 */
export async function* readPages<T>(
  read: (cursor: string | undefined) => Promise<Page<T>>,
  first?: string,
): AsyncGenerator<Page<T> & { cursor: string | undefined }> {
  const cursors = new Set([first]);
  let cursor = first;
  for (let emptyPages = 0; emptyPages < maxEmptyPages; ) {
    const page = await read(cursor);
    yield { ...page, cursor };
    if (page.next === undefined || cursors.has(page.next)) return;
    cursor = page.next;
    cursors.add(cursor);
    emptyPages = page.items.length === 0 ? emptyPages + 1 : 0;
  }
  throw new RankdError('platform_rejected', 'Roblox keeps returning empty pages of a list. Try again later.');
}
