import type { Key, KeyDeclaration, KeyMode, KeyRecord, KeyRules, NewSecret, Scope } from '../core/model.ts';

export type { KeyRecord, NewSecret } from '../core/model.ts';

export interface NewKey extends KeyRules {
  id: string;
  name: string;
  mode: KeyMode;
  scopes: Scope[];
  expiresAt?: number;
  secret: NewSecret;
}

/** The rules to set; those left out stay as they are. */
export type KeyRulesChange = { [Rule in keyof KeyRules]?: KeyRules[Rule] | null };

/** A key that is declared; `id` is for one that was not declared before. */
export interface NewDeclaration extends KeyDeclaration {
  id: string;
}

/** A declared key whose name or secret a key has that is not declared. */
export interface DeclarationClash {
  /** Of the declared key among those given. */
  index: number;
  field: 'name' | 'hash';
  key: Key;
}

/** That a request was allowed with a secret. */
export interface KeyUse {
  secretId: number;
  placeId: number;
  at: number;
}

export interface KeySelection {
  /** No others than those with one of these ids. */
  ids?: readonly string[];
  /** No others than those that have or had this name. */
  name?: string;
  /** Those made after the key of this id. */
  after?: string;
  limit?: number;
}

export interface KeyStore {
  /**
   * The caller behind a secret, by equality of its hash; `undefined` where no key ever had it. Of a state that is not older than what this
   * process received last. Shared: not to be changed.
   */
  lookUpKey(query: { hash: string; placeId: number }): KeyRecord | undefined;
  /** Throws `already_exists` where a key that is not revoked has the name. */
  createKey(key: NewKey, by: string): Promise<Key>;
  /** By id, else by name; a key that is not revoked is preferred, then the newest. */
  findKey(idOrName: string): Promise<Key | undefined>;
  /** Oldest first: all, or those that the selection leaves. */
  listKeys(selection?: KeySelection): Promise<Key[]>;
  /** The new secret counts from now, all older ones until `oldExpiresAt`. */
  rotateKey(rotation: { keyId: string; secret: NewSecret; oldExpiresAt: number }, by: string): Promise<Key>;
  /** Changes how the key narrows the policy; null takes a rule away. Throws `conflict` where it is revoked. */
  updateKey(change: { keyId: string; rules: KeyRulesChange }, by: string): Promise<Key>;
  revokeKey(keyId: string, by: string): Promise<Key>;
  /** Pauses a key (the breaker) or lifts the pause. */
  pauseKey(change: { keyId: string; paused: boolean; reason: string }, by: string): Promise<Key>;
  /**
   * Makes these keys and their places hold, changes those declared before (known by their names) and revokes those declared
   * no more; audited where something is different. Changes nothing where something is in the way, and returns that.
   */
  declareKeys(declared: readonly NewDeclaration[], by: string): Promise<DeclarationClash[]>;
  /** Keeps the last use of each of these secrets. */
  recordKeyUses(uses: readonly KeyUse[]): Promise<void>;
}
