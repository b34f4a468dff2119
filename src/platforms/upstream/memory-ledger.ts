import type { AccountName, BudgetLedger, Clock } from '../../ports/index.ts';

/** The ledger of one process: it keeps accounts in memory, by `Clock.monotonic()`, and changes them at once. */
export class MemoryLedger implements BudgetLedger {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #accounts = new Map<string, object>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  async change<Account extends object, Result>(
    name: AccountName<Account>,
    change: (account: Account, now: number) => Result,
  ): Promise<Result> {
    return this.changeNow(name, (kept, now) => {
      const account = structuredClone(kept); // as whoever changes it keeps it
      const result = change(account, now);
      this.#accounts.set(name.operation, structuredClone(account));
      return result;
    });
  }

  /** As `change`, without a promise. */
  changeNow<Account extends object, Result>(
    { operation, open }: AccountName<Account>,
    change: (account: Account, now: number) => Result,
  ): Result {
    const now = this.#clock.monotonic();
    let account = this.#accounts.get(operation) as Account | undefined;
    if (account === undefined) {
      account = open({ now });
      this.#accounts.set(operation, account);
    }
    return change(account, now);
  }
}
