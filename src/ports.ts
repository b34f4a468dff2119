import type { Credential, Group, Member, Role } from './core/model.ts';
import type { Store } from './store-port.ts';

export type * from './store-port.ts';

/**
 * The contracts between the use cases and the world. Every adapter passes the suite of its port in `test/contracts`.
 * All throw only `RankdError`.
 */
export interface Ports {
  store: Store;
  platform: Platform;
  clock: Clock;
}

/** Looks over the shoulder of ports: gives back what works the same. */
export interface Watch {
  store(store: Store): Store;
  platform(platform: Platform): Platform;
}

/** The only source of time and of waiting. */
export interface Clock {
  /** Wall clock, epoch milliseconds: for records. It can jump. */
  now(): number;
  /** Milliseconds that only ever go forward: for deadlines and durations. */
  monotonic(): number;
  /** Resolves after `ms`; rejects as soon as `signal` is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** What bounds a platform call: when to give up, and whose turn it uses. */
export interface CallContext {
  signal: AbortSignal;
  /** The moment on `Clock.monotonic()` after which the answer is of no use, in milliseconds. */
  deadlineAt: number;
  /** Calls of one lane are first come, first served; lanes share the platform's budget fairly. */
  lane: string;
  /** What is kept for the writes of this call, where something is. */
  room?: Room;
}

/**
 * The group on the platform. Thin: knows nothing of callers, plans or audit. Repeating any call is safe.
 *
 * Errors: `platform_busy` (no room before the deadline; nothing sent), `platform_unavailable`, `platform_credential`,
 * `platform_rejected`; the simulated group also throws `store_unavailable`. A call whose signal is aborted before anything
 * was sent rejects with one of the first two. A write also throws `member_not_found`, `above_acting_account`, and `outcome_unknown`: it may or
 * may not have been applied. Any other error of a write means that it certainly was not.
 */
export interface Platform {
  /** How long a read may still show the state before a write, in milliseconds. */
  readonly readLagMs: number;
  group(call: CallContext): Promise<Group>;
  /** Every role of the group, guest included, ascending by rank, then by id. */
  roles(call: CallContext): Promise<Role[]>;
  /** `undefined` where the user is not in the group. Never cached. */
  getMember(userId: number, call: CallContext): Promise<Member | undefined>;
  /**
   * Keeps room for these writes in the platform's budget, so that all of them can start before the deadline, whoever else comes
   * meanwhile. Sends nothing. Throws `platform_busy`, and keeps nothing, where there is not room for all.
   */
  reserveRoom(kinds: WriteKind[], call: CallContext): Promise<Room>;
  /** Gives a role; no change where it is held already. Returns the member as the platform shows it afterwards. */
  assignRole(change: RoleWrite, call: CallContext): Promise<Member>;
  /** Takes a role; no change where it is not held. Returns the member as the platform shows it afterwards. */
  unassignRole(change: RoleWrite, call: CallContext): Promise<Member>;
  checkCredential(call: CallContext): Promise<Credential>;
  /** One entry for each kind of call that is paced; none where the platform sets no pace. */
  pace(): Pace[];
  close(): Promise<void>;
}

export type WriteKind = 'assign' | 'unassign';

/** Room for writes: each that is sent with it (`CallContext.room`) uses up its share. Dispose it to give back what is left. */
export type Room = Disposable;

/** How the calls of one kind are let through. */
export interface Pace {
  operation: string;
  /** Calls per window. */
  limit: number;
  /** Calls that could start now. */
  left: number;
  /** Calls that wait for their turn. */
  waiting: number;
  /** Calls let through so far, and how long they waited, all together. */
  admitted: number;
  waitedMs: number;
}

export interface RoleWrite {
  userId: number;
  roleId: number;
}
