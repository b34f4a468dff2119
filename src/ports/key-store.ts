import type { StillDeclared } from '../core/declarations.ts';
import type { DeclarationClash, DeclarationFacts, DeclarationVerdict, NewDeclaration } from '../core/declared-keys.ts';
import type { JudgeKey, NewKey } from '../core/key-changes.ts';
import type { Key, KeyRecord } from '../core/model.ts';
import type { Verdict } from '../core/verdict.ts';

export type { KeyRecord, NewSecret } from '../core/model.ts';

/** The fact that a request was allowed with a secret. */
export interface KeyUse {
  secretId: string;
  placeId: number | undefined;
  /** Epoch milliseconds. */
  at: number;
}

export interface KeySelection {
  /** Only keys with one of these ids. */
  ids?: readonly string[];
  /** Only keys of this name. */
  name?: string;
  /** Only keys that were made after the key of this id. */
  after?: string;
  /** Only keys that are neither revoked nor expired at that time (epoch milliseconds). */
  acceptedAt?: number;
  /** Only keys that were made on a simulated group, or only others. */
  isSimulated?: boolean;
  limit?: number;
}

/**
 * Keys and their secrets. A `judge` is synchronous and pure, and may run more than once; its facts stay true until its verdict is
 * carried out.
 */
export interface KeyStore {
  /**
   * Finds out what others changed about keys, places and the workspace. It is asked once for all requests of a turn of the
   * event loop, after the last of them was received, and their look-ups follow. `undefined` if there is nothing to wait for, as
   * with SQLite. Throws or rejects with `store_unavailable`.
   */
  freshen(): Promise<void> | undefined;
  /**
   * The record of the key that has or had a secret with this hash, or `undefined` if no key ever had one; or a promise of that.
   * SQLite answers at once. The record is not older than the latest `freshen`. It is shared: do not change it.
   */
  lookUpKey(query: { hash: string; placeId: number }): KeyRecord | undefined | Promise<KeyRecord | undefined>;
  /**
   * Keeps a new key with its event, if `judge` allows it. `judge` gets the key that has the name already and is not revoked.
   * Throws its refusal.
   */
  createKey(key: NewKey, judge: (namesake: Key | undefined) => Verdict<NewKey>): Promise<Key>;
  /** The key with this id, else the one with this name: one that is not revoked if there is one, else the newest. */
  findKey(idOrName: string): Promise<Key | undefined>;
  /** The selected keys, oldest first. */
  listKeys(selection?: KeySelection): Promise<Key[]>;
  /** Changes a key as `judge` says, with its events. Throws `not_found`, and the refusal of `judge`: then nothing is changed. */
  updateKey(keyId: string, judge: JudgeKey): Promise<Key>;
  /**
   * Makes the declared keys and their places hold, as `judge` says. Resolves with what is in the way; then nothing is changed. Where
   * several daemons share the store, a key holds as long as the node of any handle declares it; `stillDeclared` is what others declare and
   * this node does not, or otherwise.
   */
  declareKeys(
    declared: readonly NewDeclaration[],
    judge: (facts: DeclarationFacts) => DeclarationVerdict,
  ): Promise<{ clashes: DeclarationClash[]; stillDeclared: StillDeclared[] }>;
  /** Keeps the last use of each of these secrets. */
  recordKeyUses(uses: readonly KeyUse[]): Promise<void>;
}
