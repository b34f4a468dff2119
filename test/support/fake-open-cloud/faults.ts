import type { JournalEntry, Operation } from './journal.ts';

/**
 * `status N`: that status, with an error in its usual envelope · `html`, `empty`, `truncated` (half of the JSON),
 * `oversized`, `redirect`: typical of a broken proxy · `cut`: the connection ends in the middle of the body · `reset`:
 * the connection ends without a response · `body`: the given body instead of the right one · `hang`: no response at all
 * · `slow`: the right response, but late.
 */
export type FaultKind =
  | `status ${number}`
  | 'html'
  | 'body'
  | 'empty'
  | 'truncated'
  | 'oversized'
  | 'redirect'
  | 'cut'
  | 'reset'
  | 'hang'
  | 'slow';

export interface Fault {
  operation: Operation | 'any';
  kind: FaultKind;
  /**
   * `after`: the request is carried out before the fault occurs. `before`, the default: it is not carried out, except
   * with `slow`.
   */
  when?: 'before' | 'after';
  /** The number of requests that the fault affects; 1 by default. */
  times?: number;
  /** The number of matching requests to let through before the fault occurs. */
  skip?: number;
  userId?: number;
  roleId?: number;
  delayMs?: number;
  /** The response's body for the kind `body`; for a status, it replaces the usual envelope. */
  body?: string;
  /** Additional headers for a `status N`, `html` or `redirect` response, e.g. `retry-after`. */
  headers?: Record<string, string>;
}

/** The pending faults, used up in order. */
export class Faults {
  #waiting: Array<Fault & { times: number; skip: number }> = [];
  usedCount = 0;

  add(fault: Fault): void {
    this.#waiting.push({ times: 1, skip: 0, ...fault });
  }

  clear(): void {
    this.#waiting = [];
  }

  /** Returns the next fault for this request, if any, and uses it up. */
  take(entry: JournalEntry): Fault | undefined {
    for (const fault of this.#waiting.filter((one) => matches(one, entry))) {
      if (fault.skip > 0) {
        fault.skip -= 1;
        continue;
      }
      this.usedCount += 1;
      fault.times -= 1;
      this.#waiting = this.#waiting.filter(({ times }) => times > 0);
      return fault;
    }
    return undefined;
  }
}

function matches(fault: Fault, entry: JournalEntry): boolean {
  return (
    (fault.operation === 'any' || fault.operation === entry.operation) &&
    (fault.userId === undefined || fault.userId === entry.userId) &&
    (fault.roleId === undefined || fault.roleId === entry.roleId)
  );
}
