import type { AccountName, BudgetLedger, Clock } from '../../src/ports/index.ts';

/** An in-memory ledger for gates that share a budget. Like PostgreSQL's ledger, it uses wall-clock time. */
export class MemoryLedger implements BudgetLedger {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #accounts = new Map<string, string>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  async change<Account extends object, Result>(
    { operation, open }: AccountName<Account>,
    change: (account: Account, now: number) => Result,
  ): Promise<Result> {
    const now = this.#clock.now();
    const stored = this.#accounts.get(operation);
    const account: Account = stored === undefined ? open({ now }) : JSON.parse(stored);
    const result = change(account, now);
    this.#accounts.set(operation, JSON.stringify(account));
    return result;
  }
}
