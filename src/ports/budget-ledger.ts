/** What is known of an account that the ledger does not have. */
export interface OpeningFacts<Account> {
  /** The ledger's time. */
  now: number;
  /** The account as this process knew it, if it did: the ledger has lost it, or what came last of it. */
  known?: Account;
  /** When a change of a rank was asked for last (on the ledger's time), as the ledger knows it. */
  lastChangeAt?: number;
}

/** An account, by the operation whose calls it counts, and how it is opened. `open` is pure and may run more than once. */
export interface AccountName<Account> {
  operation: string;
  open(facts: OpeningFacts<Account>): Account;
}

/**
 * Keeps, of each operation of the platform, how much of its budget is spent. An account is a plain record, which JSON keeps.
 * Changes of one account never interleave, whoever makes them.
 */
export interface BudgetLedger {
  /**
   * Has `change` change the account, at the ledger's time, and resolves with what it returns. It changes nothing but the account that it
   * gets, waits for nothing, and may run more than once, each time on the account as it is then; the last run counts.
   */
  change<Account extends object, Result>(
    name: AccountName<Account>,
    change: (account: Account, now: number) => Result,
  ): Promise<Result>;
}

/** The budget of a platform's key, if all who work with this store share it. */
export interface BudgetStore {
  /**
   * The ledger of all nodes that work with the same key. `undefined` if this store is of one machine: then each process has a budget of
   * its own. `credential` is the SHA-256 of the key, in hex.
   */
  budgetLedger(credential: string): BudgetLedger | undefined;
}
