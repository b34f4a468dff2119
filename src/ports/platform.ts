import type { Credential, Group, Member, Role } from '../core/model.ts';
import type { CallContext, Room } from './call-context.ts';

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
