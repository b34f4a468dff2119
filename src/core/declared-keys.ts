import { compareDeclarations, type NodeDeclarations, type StillDeclared } from './declarations.ts';
import { type Actor, type DomainEvent, keyDeclared, keyRevoked, placeEvent } from './events.ts';
import { ruleNames } from './key-changes.ts';
import type { Key, KeyDeclaration } from './model.ts';

/** A declared key. `id` becomes the key's id if the key was not declared before. */
export interface NewDeclaration extends KeyDeclaration {
  id: string;
}

/** A declared key with the same name or secret as the undeclared key `key`. */
export interface DeclarationClash {
  index: number;
  field: 'name' | 'hash';
  key: Key;
}

export interface DeclarationFacts extends NodeDeclarations<NewDeclaration> {
  /** Every key that is or was declared, newest first, with its declared places. */
  declared: ReadonlyArray<{ key: Key; placeIds: readonly number[] }>;
  /** The undeclared, unrevoked keys that have a declared name. */
  namesakes: readonly Key[];
  /**
   * The declared secrets that are already stored. `isAccepted`: true if the secret has no expiry. `owner`: the secret's
   * key, if that key is undeclared.
   */
  secrets: ReadonlyArray<{ hash: string; keyId: string; isAccepted: boolean; owner?: Key }>;
}

/** A declared key that applies from now on, compared with the stored one. */
export interface DeclaredKey {
  declaration: NewDeclaration;
  id: string;
  isNew: boolean;
  addedPlaces: number[];
  removedPlaces: number[];
}

export type DeclarationVerdict =
  /** Undeclared keys conflict with the declarations, so nothing is changed. */
  | { clashes: DeclarationClash[] }
  /**
   * `ended`: the ids of the keys to revoke, because they are no longer declared. The other fields are as in
   * `ComparedDeclarations`.
   */
  | {
      clashes: [];
      keys: DeclaredKey[];
      ended: string[];
      renewed: NewDeclaration[];
      dropped: string[];
      stillDeclared: StillDeclared[];
      events: DomainEvent[];
    };

export function judgeDeclarations(
  declared: readonly NewDeclaration[],
  actor: Actor,
): (facts: DeclarationFacts) => DeclarationVerdict {
  return (facts) => {
    const clashes = declared.flatMap((declaration, index) => clashesOf(declaration, index, facts));
    if (clashes.length > 0) return { clashes };
    const { inForce, renewed, dropped, stillDeclared } = compareDeclarations(declared, facts, { isSame, excludes });
    const keys = inForce.map((declaration) => declaredKey(declaration, facts));
    const names = new Set(inForce.map(({ name }) => name));
    const ended = facts.declared
      .map(({ key }) => key)
      .filter(({ name, revokedAt }) => revokedAt === undefined && !names.has(name));
    const events = [
      ...keys.flatMap((key) => eventsOf(key, facts, actor)),
      ...ended.map((key) => keyRevoked(key, { reason: 'no longer declared' }, actor)),
    ];
    return { clashes: [], keys, ended: ended.map(({ id }) => id), renewed, dropped, stillDeclared, events };
  };
}

/** True if the two can't both apply: a name or a secret belongs to only one key. */
function excludes(one: NewDeclaration, other: NewDeclaration): boolean {
  return one.name === other.name || (one.hash !== undefined && one.hash === other.hash);
}

function isSame(one: NewDeclaration, other: NewDeclaration): boolean {
  const all = (declaration: NewDeclaration) => {
    const { name, hash, whitelist } = declaration;
    return JSON.stringify([name, hash, [...whitelist.placeIds].sort(), definitionOf(declaration)]);
  };
  return all(one) === all(other);
}

function clashesOf({ name, hash }: KeyDeclaration, index: number, facts: DeclarationFacts): DeclarationClash[] {
  const byName = facts.namesakes.find((key) => key.name === name);
  const byHash = facts.secrets.find((secret) => secret.hash === hash)?.owner;
  return [
    ...(byName === undefined ? [] : [{ index, field: 'name' as const, key: byName }]),
    ...(byHash === undefined ? [] : [{ index, field: 'hash' as const, key: byHash }]),
  ];
}

/** Returns the key that the declaration continues: the newest key with this name that is or was declared. */
function before({ name }: KeyDeclaration, { declared }: DeclarationFacts) {
  return declared.find(({ key }) => key.name === name);
}

function declaredKey(declaration: NewDeclaration, facts: DeclarationFacts): DeclaredKey {
  const { key, placeIds = [] } = before(declaration, facts) ?? {};
  const wanted = declaration.whitelist.placeIds;
  return {
    declaration,
    id: key?.id ?? declaration.id,
    isNew: key === undefined,
    addedPlaces: wanted.filter((placeId) => !placeIds.includes(placeId)),
    removedPlaces: placeIds.filter((placeId) => !wanted.includes(placeId)),
  };
}

function eventsOf({ declaration, id, ...places }: DeclaredKey, facts: DeclarationFacts, actor: Actor): DomainEvent[] {
  const known = before(declaration, facts)?.key;
  const secret = facts.secrets.find(({ hash }) => hash === declaration.hash);
  const hasSecret = declaration.hash !== undefined;
  const isNewSecret = hasSecret && (secret === undefined || secret.keyId !== id || !secret.isAccepted);
  const isDifferent = known === undefined || isNewSecret || definitionOf(known) !== definitionOf(declaration);
  const detail = { keyId: id, declaredIn: declaration.whitelist.declaredIn };
  return [
    ...(isDifferent ? [keyDeclared(id, declaration, isNewSecret, actor)] : []),
    ...places.addedPlaces.map((placeId) => placeEvent('add', placeId, detail, actor)),
    ...places.removedPlaces.map((placeId) => placeEvent('remove', placeId, detail, actor)),
  ];
}

/**
 * Returns the definition as text for comparison, leaving out the name, secret, places and position in the file. A
 * revoked key never equals a declaration.
 */
function definitionOf(key: Key | KeyDeclaration): string {
  const { mode, scopes, expiresAt } = key;
  const rules = 'rules' in key ? key.rules : key;
  const isRevoked = 'revokedAt' in key && key.revokedAt !== undefined;
  return JSON.stringify([mode, scopes, expiresAt, isRevoked, ruleNames.map((rule) => rules[rule])]);
}
