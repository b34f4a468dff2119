import type Database from 'better-sqlite3';
import { isRankdError, RankdError } from '../base/errors.ts';
import type { Credential, Group, Member, NamedUser, Role } from '../core/model.ts';
import type {
  CallContext,
  MemberList,
  Pace,
  Page,
  Platform,
  Reachability,
  Reservation,
  RoleWrite,
} from '../ports/index.ts';
import { type GroupSeed, openGroup } from './simulated-group.ts';

/** As on Roblox. */
const pageSize = 100;

/**
 * A simulated group, stored in an SQLite file that the CLI and the daemon share, so each sees the other's writes
 * immediately. It refuses the same changes as the real platform. Calls that use the file can also throw
 * `store_unavailable`, which means that nothing was written.
 */
export class SimulatedPlatform implements Platform {
  readonly readLagMs = 0;
  readonly writeMs = 0;
  readonly #db: Database.Database;
  readonly #actingUserId: number;
  readonly #users: NamedUser[];

  private constructor(db: Database.Database, { actingUserId, users = [] }: GroupSeed) {
    this.#db = db;
    this.#actingUserId = actingUserId;
    this.#users = users;
  }

  /**
   * Opens or creates the file, whose folder must exist. Changes to the group persist until the file is opened with a
   * different `seed`. Throws `config_invalid` if the file is some other database, and `store_unavailable` if it cannot
   * be used.
   */
  static open({ file, seed }: { file: string; seed: GroupSeed }): SimulatedPlatform {
    return orUnavailable(() => new SimulatedPlatform(openGroup(file, seed), seed));
  }

  async group(call: CallContext): Promise<Group> {
    const query = 'SELECT id, name, owner_id AS ownerId, (SELECT count(*) FROM members) AS memberCount FROM community';
    return answer(call, () => {
      const { ownerId, ...group } = this.#db.prepare(query).get() as Group & { ownerId: number | null };
      return ownerId === null ? group : { ...group, ownerId };
    });
  }

  async roles(call: CallContext): Promise<Role[]> {
    const query = "SELECT id, name, rank, kind FROM roles ORDER BY rank, kind <> 'base', id";
    return answer(call, () => this.#db.prepare<[], Role>(query).all());
  }

  async role(roleId: number, call: CallContext): Promise<Role | undefined> {
    return (await this.roles(call)).find(({ id }) => id === roleId);
  }

  async getMember(userId: number, call: CallContext): Promise<Member | undefined> {
    return answer(call, () => memberOf(userId, this.#heldRoles(userId)));
  }

  async membersWith({ roleId, after = '0' }: MemberList, call: CallContext): Promise<Page<number>> {
    const query = `SELECT user_id FROM members AS member WHERE user_id > :after AND (:roleId IS NULL OR EXISTS (
      SELECT 1 FROM held_roles AS held WHERE held.user_id = member.user_id AND held.role_id = :roleId))
      ORDER BY user_id LIMIT ${pageSize}`;
    return answer(call, () => {
      if (!/^\d+$/.test(after)) throw new RankdError('platform_rejected', 'The simulated group has no such page.');
      const list = { roleId: roleId === undefined ? null : checkedId(roleId), after: checkedId(Number(after)) };
      const items = this.#db.prepare<typeof list, number>(query).pluck().all(list) as number[];
      return { items, ...(items.length === pageSize && { next: String(items.at(-1)) }) };
    });
  }

  async findUser(name: string): Promise<NamedUser | undefined> {
    return this.#users.find((user) => user.name.toLowerCase() === name.toLowerCase());
  }

  async userName(userId: number): Promise<string | undefined> {
    return this.#users.find(({ id }) => id === userId)?.name;
  }

  async placesOf(): Promise<never> {
    throw new RankdError('platform_rejected', 'A simulated group has no experiences.', {
      hint: 'rankd whitelist add PLACE',
    });
  }

  /** The simulation has no rate limits. */
  async reserve(): Promise<Reservation> {
    return { [Symbol.dispose]: () => undefined };
  }

  async assignRole(change: RoleWrite, call: CallContext): Promise<Member> {
    return this.#write(change, call, 'INSERT INTO held_roles (user_id, role_id) VALUES (?, ?) ON CONFLICT DO NOTHING');
  }

  async unassignRole(change: RoleWrite, call: CallContext): Promise<Member> {
    return this.#write(change, call, 'DELETE FROM held_roles WHERE user_id = ? AND role_id = ?');
  }

  async checkCredential(call: CallContext): Promise<Credential> {
    const userId = this.#actingUserId;
    return answer(call, () => ({ state: 'valid', userId, canWrite: this.#heldRoles(userId).length > 0 }));
  }

  pace(): Pace[] {
    return [];
  }

  reachability(): Reachability {
    return { unreached: [], reached: [] };
  }

  surprises(): [] {
    return [];
  }

  async close(): Promise<void> {
    this.#db.close();
  }

  async #write({ userId, roleId }: RoleWrite, call: CallContext, statement: string): Promise<Member> {
    const write = this.#db.transaction(() => {
      const role = this.#writableRole(roleId);
      const held = this.#heldRoles(userId);
      if (held.length === 0) throw new RankdError('member_not_found', `User ${userId} is not in the simulated group.`);
      this.#refuseAboveActor(`The role "${role.name}"`, role.rank);
      this.#refuseAboveActor(`The highest role of member ${userId}`, highestRank(held));
      this.#db.prepare(statement).run(userId, roleId);
      return { userId, roleIds: idsOf(this.#heldRoles(userId)) };
    });
    await call.fence?.();
    return answer(call, () => write.immediate());
  }

  #writableRole(roleId: number): Role {
    const role = this.#db
      .prepare<[number], Role>('SELECT id, name, rank, kind FROM roles WHERE id = ?')
      .get(checkedId(roleId));
    if (role === undefined)
      throw new RankdError('platform_rejected', `The simulated group has no role with the id ${roleId}.`);
    if (role.kind !== 'custom') {
      throw new RankdError(
        'platform_rejected',
        `"${role.name}" is the ${role.kind} role, which cannot be given or taken.`,
      );
    }
    return role;
  }

  /**
   * Throws unless `rank` is strictly below the acting account's highest rank: the account can't change itself, its
   * peers or the owner.
   */
  #refuseAboveActor(what: string, rank: number): void {
    const ceiling = highestRank(this.#heldRoles(this.#actingUserId));
    if (rank < ceiling) return;
    throw new RankdError(
      'above_acting_account',
      `${what} has rank ${rank}, which is not below the acting account's rank ${ceiling}.`,
    );
  }

  /**
   * Returns all roles that the user holds, including the base role, or an empty array if the user is not in the group.
   */
  #heldRoles(userId: number): Array<Pick<Role, 'id' | 'rank'>> {
    const query = `
      SELECT role.id, role.rank FROM members AS member JOIN roles AS role ON role.kind = 'base'
        OR EXISTS (SELECT 1 FROM held_roles AS held WHERE held.user_id = member.user_id AND held.role_id = role.id)
      WHERE member.user_id = ? ORDER BY role.id`;
    return this.#db.prepare<[number], Pick<Role, 'id' | 'rank'>>(query).all(checkedId(userId));
  }
}

async function answer<T>(call: CallContext, work: () => T): Promise<T> {
  if (call.signal.aborted) {
    throw new RankdError('platform_busy', 'The simulated group was not called: no time was left.');
  }
  return orUnavailable(work);
}

function orUnavailable<T>(work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (isRankdError(cause)) throw cause;
    const why = cause instanceof Error ? cause.message : 'unknown reason';
    throw new RankdError('store_unavailable', `The simulated group's file could not be used: ${why}.`, {
      cause,
      hint: 'check that the data directory exists, has free space and belongs to the user running rankd',
    });
  }
}

function checkedId(id: number): number {
  if (Number.isSafeInteger(id)) return id;
  throw new RankdError('platform_rejected', 'An id must be a whole number of at most 2^53-1.');
}

function memberOf(userId: number, held: Array<Pick<Role, 'id'>>): Member | undefined {
  return held.length === 0 ? undefined : { userId, roleIds: idsOf(held) };
}

function highestRank(held: Array<Pick<Role, 'rank'>>): number {
  return Math.max(0, ...held.map((role) => role.rank));
}

function idsOf(held: Array<Pick<Role, 'id'>>): number[] {
  return held.map((role) => role.id);
}
