import { type Clock, deadlineIn } from '../base/clock.ts';
import { RankdError } from '../base/errors.ts';
import type { Surprise } from '../base/surprises.ts';
import type { Credential, Group, Member, NamedUser, Place, Role } from '../core/model.ts';

/**
 * The group on the platform. An adapter knows nothing of callers, plans or audit. Repeating any call is safe.
 *
 * Errors of every call: `platform_busy` (the budget has no room before the deadline; nothing was sent),
 * `platform_unavailable`, `platform_credential`, `platform_rejected`. The simulated group also throws
 * `store_unavailable`. A call whose signal is aborted before anything was sent rejects with `platform_busy` or
 * `platform_unavailable`. A write also throws `member_not_found`, `above_acting_account` and `outcome_unknown`: it may
 * or may not have been applied. Any other error of a write means that it was not sent, or that the platform refused it:
 * rankd reads the member before it believes a refusal.
 */
export interface Platform {
  /** The time after a write for which a read may still show the earlier state, in milliseconds. */
  readonly readLagMs: number;
  /**
   * The present duration of an ordinary change after the read of its member, in milliseconds: with less time left, the
   * read would be in vain.
   */
  readonly changeMs: number;
  group(call: CallContext): Promise<Group>;
  /**
   * Every role of the group, guest included, ascending by rank, the base role before others of its rank, then by id. If
   * the base role is unknown, its candidates are `unclear`.
   */
  roles(call: CallContext): Promise<Role[]>;
  /** One role, even one that the list lacks; `undefined` if the group has no such role. */
  role(roleId: number, call: CallContext): Promise<Omit<Role, 'kind'> | undefined>;
  /** The member; `undefined` if the user is not in the group. It is never cached. */
  getMember(userId: number, call: CallContext): Promise<Member | undefined>;
  /**
   * The ids of at most a hundred members with this role, or of all members, in no order. If members come or go between
   * two pages, one may be listed twice or not at all.
   */
  membersWith(list: MemberList, call: CallContext): Promise<Page<number>>;
  /**
   * Reserves room in the platform's budget for these writes: all of them can start before the deadline, whatever other
   * calls come. Sends nothing. Throws `platform_busy`, and reserves nothing, if there is not room for all.
   */
  reserve(kinds: WriteKind[], call: CallContext): Promise<Reservation>;
  /**
   * Gives a role; changes nothing if the member already has it. Resolves with the resulting member; `undefined` if the
   * platform accepted the write without showing the member.
   */
  assignRole(change: RoleWrite, call: CallContext): Promise<Member | undefined>;
  /** Takes a role away; changes nothing if the member lacks it. Resolves like `assignRole`. */
  unassignRole(change: RoleWrite, call: CallContext): Promise<Member | undefined>;
  /**
   * The user who has this name, or had it earlier: compare the two. `undefined` if there is none. The call needs no
   * credential, and its result is cached for a while.
   */
  findUser(name: string, call: CallContext): Promise<NamedUser | undefined>;
  /** A user's present name; `undefined` if there is no such user. */
  userName(userId: number, call: CallContext): Promise<string | undefined>;
  /**
   * The places of an experience, its start place included. The call needs no credential. Throws `platform_rejected` if
   * the platform does not list them.
   */
  placesOf(universeId: number, call: CallContext): Promise<Place[]>;
  /** The platform's present report on the credential: every call asks again. */
  checkCredential(call: CallContext): Promise<Credential>;
  /** One entry for each operation with a budget; none if the platform has no limits. */
  pace(): Pace[];
  /** Unexpected behavior so far with which rankd can cope. */
  surprises(): Surprise[];
  /** The platform's reachability in the latest calls. */
  reachability(): Reachability;
  /** Ends running calls; no call may follow. */
  close(): Promise<void>;
}

export interface MemberList {
  /** Everyone holds the base role: without a role, all members are listed. */
  roleId: number | undefined;
  /** The `next` of an earlier page of the same list; absent for the first page. */
  after?: string | undefined;
}

export interface Page<T> {
  /** It can be empty although more pages follow. */
  items: T[];
  /** The cursor of the next page; absent on the last one. */
  next?: string | undefined;
}

/** The state of the connections to the platform. */
export interface Reachability {
  /** Hosts that can't be reached at present, and the time of the first failure (epoch milliseconds). */
  unreached: Array<{ host: string; error: RankdError; since: number }>;
  /** Hosts that can be reached. A host that was not called for a while is unknown. */
  reached: string[];
  /** This machine's clock minus the platform's; absent if no response showed that. */
  clockAheadMs?: number | undefined;
}

/** The entry in `surprises` if the list of roles omits the base role. */
export const baseRoleOmitted = 'the list omits the base role';

/** Giving a role, or taking one. */
export type WriteKind = 'assign' | 'unassign';

/**
 * The result of one check of the real platform. `differs`: rankd may or may not cope with it, so an operator should
 * check it.
 */
export interface LiveFinding {
  check: string;
  result: 'ok' | 'differs' | 'FAIL';
  /** The differences by path and type. They contain no values, so an operator can share them. */
  details: string[];
}

/** The rate at which the calls of one operation are admitted. */
export interface Pace {
  operation: string;
  /** Calls per window. */
  limit: number;
  /** Calls that could start now; if several nodes share the budget, without those that others wait for. */
  left: number;
  /** Calls in the wait queue. */
  waiting: number;
  /** Admitted calls so far, and the sum of their waits in milliseconds. */
  admitted: number;
  waitedMs: number;
}

export interface RoleWrite {
  userId: number;
  roleId: number;
}

/** The bounds of a platform call: its deadline, and the lane whose share of the budget it uses. */
export interface CallContext {
  signal: AbortSignal;
  /** The result is useless after this time (milliseconds on `Clock.monotonic()`). */
  deadlineAt: number;
  /** Calls of one lane are first come, first served. Lanes share the platform's budget fairly. */
  lane: string;
  /** The room in the budget that was reserved for the writes of this call. */
  reservation?: Reservation;
  /** Called before each try of a write. If it rejects, the write is not sent, and fails with that error. */
  fence?: () => Promise<WriteLease>;
  /** True if the member is read after a refusal of the write: if there is no room, the refusal leaves time for that read. */
  readsAfter?: boolean;
}

/** The time for which a write may be handed over. */
export interface WriteLease {
  /** The time left, in milliseconds; `Infinity` if no other node takes over. It is read when the write is handed over. */
  leftMs(): number;
  /** Records that the write may have been handed over too late. */
  noteLate(): void;
}

/** The lease of a write that no other node takes over. */
export const unboundedLease: WriteLease = { leftMs: () => Number.POSITIVE_INFINITY, noteLate: () => undefined };

/** Room in the platform's budget for a number of writes. Each write sent with it uses up its part. Dispose it to release the rest. */
export type Reservation = Disposable;

/** The bounds of calls that give up `ms` milliseconds from now. Dispose it to release its timer. */
export function callWithin(clock: Clock, ms: number, lane: string): CallContext & Disposable {
  const { at, ...deadline } = deadlineIn(clock, ms);
  return { ...deadline, deadlineAt: at, lane };
}

/** The same call with only a share (0..1) of the time it has left: for something that the caller can do without. */
export function withShare(call: CallContext, { clock, share }: { clock: Clock; share: number }): CallContext {
  const now = clock.monotonic();
  return { ...call, deadlineAt: now + (call.deadlineAt - now) * share };
}

/** A list is broken if this many pages in a row are empty. */
const maxEmptyPages = 3;

/** The pages of a list, each with its own cursor, from `first` on until a cursor repeats. */
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
