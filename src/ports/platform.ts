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
 * `member_not_found`, `above_acting_account` and `outcome_unknown`. `outcome_unknown` means that the write may have
 * been applied. Any other error means that it was not sent, or that the platform refused it.
 */
export interface Platform {
  /** The maximum time after a write for which a read may still return the earlier state, in milliseconds. */
  readonly readLagMs: number;
  /**
   * The time that an ordinary change currently needs after reading its member, in milliseconds. A change with less time
   * left does not read the member.
   */
  readonly changeMs: number;
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
   * Returns a page of at most a hundred member ids in no particular order. If `list.roleId` is set, the page contains
   * only members with that role. If members join or leave between two pages, a member may be listed twice or not at
   * all.
   */
  membersWith(list: MemberList, call: CallContext): Promise<Page<number>>;
  /**
   * Reserves room for these writes in the platform's budget, so that all of them can start before the deadline. Sends
   * nothing. Throws `platform_busy`, and reserves nothing, if there is not room for all.
   */
  reserve(kinds: WriteKind[], call: CallContext): Promise<Reservation>;
  /**
   * Gives a role; changes nothing if the member already has it. Resolves with the resulting member, or with `undefined`
   * if the platform's response does not include the member.
   */
  assignRole(change: RoleWrite, call: CallContext): Promise<Member | undefined>;
  /** Takes a role away; changes nothing if the member lacks it. Resolves with the same values as `assignRole`. */
  unassignRole(change: RoleWrite, call: CallContext): Promise<Member | undefined>;
  /**
   * Returns the user with this current or former name, or `undefined`; the returned name is the current one. Needs no
   * credential. The result is cached for a while.
   */
  findUser(name: string, call: CallContext): Promise<NamedUser | undefined>;
  /** Returns a user's current name, or `undefined` if there is no such user. */
  userName(userId: number, call: CallContext): Promise<string | undefined>;
  /**
   * Returns the places of an experience, including its start place. Needs no credential. Throws `platform_rejected` if
   * the platform does not list them.
   */
  placesOf(universeId: number, call: CallContext): Promise<Place[]>;
  /** Returns the platform's report on the credential, never from a cache. */
  checkCredential(call: CallContext): Promise<Credential>;
  /** Returns one entry for each operation with a budget, and none if the platform has no limits. */
  pace(): Pace[];
  /** Returns the unexpected behavior of the platform that rankd has tolerated so far. */
  surprises(): Surprise[];
  /** Returns the platform's reachability according to the latest calls. */
  reachability(): Reachability;
  /** Releases the platform's resources. The caller must make no more calls. */
  close(): Promise<void>;
}

export interface MemberList {
  /** `undefined` lists all members. */
  roleId: number | undefined;
  /** The `next` of an earlier page of the same list; absent for the first page. */
  after?: string | undefined;
}

export interface Page<T> {
  /** Can be empty even if more pages follow. */
  items: T[];
  /** The cursor for the next page; absent on the last one. */
  next?: string | undefined;
}

/** The reachability of the platform's hosts. */
export interface Reachability {
  /** Hosts that are currently unreachable, each with the time of its first failure (epoch milliseconds). */
  unreached: Array<{ host: string; error: RankdError; since: number }>;
  /** Reachable hosts. The state of a host without recent calls is unknown. */
  reached: string[];
  /** This machine's clock minus the platform's; absent if no response has reported the platform's time. */
  clockAheadMs?: number | undefined;
}

/** The entry in `surprises` for a role list that omits the base role. */
export const baseRoleOmitted = 'the list omits the base role';

/** `assign` gives a role; `unassign` takes one away. */
export type WriteKind = 'assign' | 'unassign';

/**
 * The result of one check of the real platform. `differs`: the platform behaves differently than rankd expects, and
 * rankd may not be able to handle that, so an operator should investigate it.
 */
export interface LiveFinding {
  check: string;
  result: 'ok' | 'differs' | 'FAIL';
  /** The differences by path and type, without any values, so that an operator can share them. */
  details: string[];
}

/** The budget for the calls of one operation, and its use. */
export interface Pace {
  operation: string;
  /** Calls per window. */
  limit: number;
  /** Calls that could start now, minus the calls waiting on other nodes that share the budget. */
  left: number;
  /** Calls in the wait queue. */
  waiting: number;
  /** Calls admitted so far. */
  admitted: number;
  /** The total wait of the admitted calls, in milliseconds. */
  waitedMs: number;
}

export interface RoleWrite {
  userId: number;
  roleId: number;
}

/** The context of a platform call: its deadline, lane, reserved budget and write fence. */
export interface CallContext {
  signal: AbortSignal;
  /** The time after which the caller does not need the result (milliseconds on `Clock.monotonic()`). */
  deadlineAt: number;
  /** Calls in one lane are admitted in order of arrival. Lanes share the platform's budget fairly. */
  lane: string;
  /** The budget slot that is reserved for this call. */
  reservation?: Reservation;
  /** Called before each attempt to send a write. If it rejects, that attempt is not sent, and the call fails. */
  fence?: () => Promise<WriteLease>;
  /**
   * True if the caller reads the member after a refused write. Retries after a refusal for the rate limit then end
   * early enough to leave time for that read.
   */
  readsAfter?: boolean;
}

/** The time limit for sending a write. */
export interface WriteLease {
  /** Returns the time left, in milliseconds, or `Infinity` if no other node can take over. */
  leftMs(): number;
  /** Records that the write may have been sent too late. */
  noteLate(): void;
}

/** The lease for a write that no other node can take over. */
export const unboundedLease: WriteLease = { leftMs: () => Number.POSITIVE_INFINITY, noteLate: () => undefined };

/**
 * Reserved slots in the platform's budget. Each write uses up one. Dispose of the reservation to release the others.
 */
export type Reservation = Disposable;

/** Returns a context for calls that time out `ms` milliseconds from now. Dispose of it to release the timer. */
export function callWithin(clock: Clock, ms: number, lane: string): CallContext & Disposable {
  const { at, ...deadline } = deadlineIn(clock, ms);
  return { ...deadline, deadlineAt: at, lane };
}

/** Returns a context with only a share (0..1) of the call's remaining time, for an optional step. */
export function withShare(call: CallContext, { clock, share }: { clock: Clock; share: number }): CallContext {
  const now = clock.monotonic();
  return { ...call, deadlineAt: now + (call.deadlineAt - now) * share };
}

/** The number of consecutive empty pages after which a list counts as broken. */
const maxEmptyPages = 3;

/**
 * Yields the pages of a list, each with its cursor. Begins at the cursor `first`, and stops after the last page or
 * before a repeated cursor. Throws `platform_rejected` after `maxEmptyPages` consecutive empty pages.
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
