export interface FakeRole {
  id: number;
  name: string;
  rank: number;
  isBase?: boolean;
  /** The permission "Manage lower-ranked member ranks". */
  changeRank?: boolean;
  /** True if the list of roles omits this role, but a read of the role itself returns it. */
  isPrivate?: boolean;
  /** The permission "Accept join requests". */
  acceptRequests?: boolean;
}

export interface FakeGroup {
  id: number;
  name: string;
  ownerId?: number | undefined;
  locked: boolean;
  roles: FakeRole[];
  /** Each member's roles without the base role, keyed by user id. */
  members: Record<number, number[]>;
}

interface Snapshot {
  at: number;
  roleIds: number[];
}

/** The group's current state, and each member's previous roles for lagging reads. Times are in milliseconds. */
export class GroupState {
  readonly id: number;
  name: string;
  ownerId: number | undefined;
  locked: boolean;
  roles: FakeRole[];
  /** Members in the order in which they joined, each with snapshots from oldest to newest. */
  readonly #members = new Map<number, Snapshot[]>();
  readonly #echoes = new Map<number, number[]>();
  /** The wall-clock times at which former members rejoined. Other members have no entry. */
  readonly #joinedAt = new Map<number, number>();
  readonly #left = new Set<number>();
  readonly #wallNow: () => number;

  constructor({ id, name, ownerId, locked, roles, members }: FakeGroup, wallNow: () => number = Date.now) {
    this.#wallNow = wallNow;
    this.id = id;
    this.name = name;
    this.ownerId = ownerId;
    this.locked = locked;
    this.roles = structuredClone(roles);
    for (const [userId, roleIds] of Object.entries(members)) this.setMember(Number(userId), roleIds);
  }

  get userIds(): number[] {
    return [...this.#members.keys()];
  }

  get base(): FakeRole {
    const base = this.roles.find((role) => role.isBase);
    if (base === undefined) throw new Error('the fake group has no base role');
    return base;
  }

  role(id: number): FakeRole | undefined {
    return this.roles.find((role) => role.id === id);
  }

  /** Makes the user a member who has always held these roles and the base role. A user who left rejoins now. */
  setMember(userId: number, roleIds: number[]): void {
    this.#members.set(userId, [{ at: Number.NEGATIVE_INFINITY, roleIds: [...roleIds] }]);
    if (this.#left.delete(userId)) this.#joinedAt.set(userId, this.#wallNow());
  }

  removeMember(userId: number): void {
    if (this.#members.delete(userId)) this.#left.add(userId);
  }

  /** Returns epoch milliseconds. */
  joinedAt(userId: number): number {
    return this.#joinedAt.get(userId) ?? Date.UTC(2020, 2, 29, 18, 15, 20, 100);
  }

  /**
   * Returns the roles held at a time (by default, now), sorted by id and without the base role; `undefined` for
   * non-members.
   */
  held(userId: number, at = Number.POSITIVE_INFINITY): number[] | undefined {
    const snapshot = this.#members.get(userId)?.findLast((one) => one.at <= at);
    return snapshot && [...snapshot.roleIds].sort((a, b) => a - b);
  }

  /** Replaces the member's roles, except for the base role, as of `now`. */
  change(userId: number, roleIds: number[], now: number): void {
    this.#members.get(userId)?.push({ at: now, roleIds });
  }

  /** Returns the roles in the response to the latest write without effect, or else the roles held. */
  echoed(userId: number): number[] | undefined {
    return this.#echoes.get(userId) ?? this.held(userId);
  }

  echo(userId: number, roleIds: number[]): void {
    this.#echoes.set(userId, roleIds);
  }

  changedAt(userId: number): number {
    return this.#members.get(userId)?.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
  }

  highest(roleIds: number[]): FakeRole {
    const held = this.roles.filter((role) => roleIds.includes(role.id));
    return held.reduce((top, role) => (role.rank > top.rank ? role : top), this.base);
  }
}
