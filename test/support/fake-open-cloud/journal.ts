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
  | 'unknown';

/** A request as the fake saw it. */
export interface JournalEntry {
  operation: Operation;
  method: string;
  /** Path and query, as sent. */
  path: string;
  headers: Record<string, string>;
  /** The user and the role that it is about, where it names one. */
  userId?: number;
  roleId?: number;
  /** Milliseconds on the fake's clock; `endedAt` once answered or given up. */
  at: number;
  endedAt?: number;
  /** 0 where no whole answer was sent. */
  status: number;
  /** True where it changed the roles of a member. */
  applied: boolean;
}

/** Every request in order, and what a careful client would not have done. */
export class Journal {
  readonly entries: JournalEntry[] = [];
  readonly #violations: string[] = [];
  readonly #overlaps: Overlap[] = [];
  readonly #neverWithoutRole = new Set<number>();
  readonly #hangUpMs: number;
  readonly #neverWritten = new Set<number | undefined | 'anybody'>();

  /** `hangUpMs`: how long after a client has given up on a request the end of its connection may be noticed. */
  constructor({ hangUpMs }: { hangUpMs: number }) {
    this.#hangUpMs = hangUpMs;
  }

  /** What went wrong so far, one sentence each; empty for a well-behaved client. */
  violations(): string[] {
    return [...this.#violations, ...this.#overlaps.filter((one) => !this.#wasGivenUp(one)).map(({ what }) => what)];
  }

  /** From now on, the member must hold a role besides the base role after every write. */
  expectNeverWithoutRole(userId: number): void {
    this.#neverWithoutRole.add(userId);
  }

  /** From now on, any write is a violation; where a member is named, any about that one. */
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
    if ((entry.operation === 'publicRoles' || entry.operation === 'userNames') && 'x-api-key' in entry.headers)
      this.#violations.push('the key was sent to another host than Open Cloud');
    this.entries.push(entry);
  }

  /** Notes that a write changed a member, who now holds `roleIds` besides the base role. */
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
      this.#violations.push(`${what} came where no write may come`);
    const running = this.writes(entry.userId).find((other) => other.endedAt === undefined);
    if (running === undefined) return;
    this.#overlaps.push({
      running,
      at: entry.at,
      what: `${what} came while ${running.operation} of role ${running.roleId} was running`,
    });
  }

  /** A client that gives up on a request and repeats it at once: its new request can arrive before the end of the old connection. */
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
