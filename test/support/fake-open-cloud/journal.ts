export type Operation =
  | 'group'
  | 'roles'
  | 'role'
  | 'memberships'
  | 'assign'
  | 'unassign'
  | 'introspect'
  | 'publicRoles'
  | 'migration'
  | 'user'
  | 'userNames'
  | 'places'
  | 'unknown';

export interface JournalEntry {
  operation: Operation;
  method: string;
  path: string;
  headers: Record<string, string>;
  /** The user in the path or in the filter. */
  userId?: number;
  roleId?: number;
  /** The time of the request on the fake's clock, in milliseconds. */
  at: number;
  /** The time at which the request was answered or abandoned; absent while it is in flight. */
  endedAt?: number;
  /** 0 if no complete response was sent. */
  status: number;
  /** True if the request changed a member's roles. */
  applied: boolean;
}

/** All requests, in order, and the mistakes that a careful client would not make. */
export class Journal {
  readonly entries: JournalEntry[] = [];
  readonly #violations: string[] = [];
  readonly #overlaps: Overlap[] = [];
  readonly #neverWithoutRole = new Set<number>();
  readonly #hangUpMs: number;
  readonly #neverWritten = new Set<number | undefined | 'anybody'>();

  constructor({ hangUpMs }: { hangUpMs: number }) {
    this.#hangUpMs = hangUpMs;
  }

  violations(): string[] {
    return [...this.#violations, ...this.#overlaps.filter((one) => !this.#wasGivenUp(one)).map(({ what }) => what)];
  }

  expectNeverWithoutRole(userId: number): void {
    this.#neverWithoutRole.add(userId);
  }

  expectNoWrites(userId: number | 'anybody' = 'anybody'): void {
    this.#neverWritten.add(userId);
  }

  writes(userId?: number): JournalEntry[] {
    return this.entries.filter((entry) => isWrite(entry) && (userId === undefined || entry.userId === userId));
  }

  requests(operation: Operation): JournalEntry[] {
    return this.entries.filter((entry) => entry.operation === operation);
  }

  begin(entry: JournalEntry): void {
    if (isWrite(entry)) this.#checkWrite(entry);
    if (['publicRoles', 'userNames', 'places', 'migration'].includes(entry.operation) && 'x-api-key' in entry.headers)
      this.#violations.push('the key was sent to a host other than Open Cloud');
    this.entries.push(entry);
  }

  /** Records that a write changed a member, who now holds `roleIds` in addition to the base role. */
  apply(entry: JournalEntry, roleIds: number[]): void {
    entry.applied = true;
    if (entry.userId !== undefined && this.#neverWithoutRole.has(entry.userId) && roleIds.length === 0) {
      this.#violations.push(
        `user ${entry.userId} was left without any role by ${entry.operation} of role ${entry.roleId}`,
      );
    }
  }

  #checkWrite(entry: JournalEntry): void {
    const what = `${entry.operation} of role ${entry.roleId} for user ${entry.userId}`;
    if (this.#neverWritten.has('anybody') || this.#neverWritten.has(entry.userId))
      this.#violations.push(`${what} was not expected`);
    const running = this.writes(entry.userId).find((other) => other.endedAt === undefined);
    if (running === undefined) return;
    this.#overlaps.push({
      running,
      at: entry.at,
      what: `${what} was sent while ${running.operation} of role ${running.roleId} was in flight`,
    });
  }

  /**
   * True if the client gave up on the previous request before it sent the next one, which can arrive before the fake
   * notices that the client has given up.
   */
  #wasGivenUp({ running, at }: Overlap): boolean {
    return running.status === 0 && running.endedAt !== undefined && running.endedAt - at < this.#hangUpMs;
  }
}

interface Overlap {
  running: JournalEntry;
  at: number;
  what: string;
}

function isWrite({ operation }: JournalEntry): boolean {
  return operation === 'assign' || operation === 'unassign';
}
