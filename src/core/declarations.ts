import { RankdError } from '../base/errors.ts';

/**
 * A declaration that a node has stored. Each stored declaration gets a higher `seq` than all before it; of two with the
 * same name, the one with the higher `seq` applies.
 */
export interface StoredDeclaration<Declaration> {
  declaration: Declaration;
  seq: number;
}

/**
 * The declarations of this node (`stored`) and of other live nodes (`elsewhere`). Both are empty if only one daemon can
 * use the store.
 */
export interface NodeDeclarations<Declaration> {
  stored: readonly StoredDeclaration<Declaration>[];
  elsewhere: ReadonlyArray<StoredDeclaration<Declaration> & { node: string }>;
}

/**
 * A name that other nodes declare, and that this node declares differently or not at all. `inForce`: the side whose
 * declaration applies; absent if this node does not declare the name.
 */
export interface StillDeclared {
  name: string;
  nodes: string[];
  inForce?: 'own' | 'theirs';
}

/** The combined effect of this node's declarations and those of other nodes. */
export interface ComparedDeclarations<Declaration> {
  inForce: Declaration[];
  /** The declarations that are new or changed on this node. */
  renewed: Declaration[];
  /** The names that this node no longer declares. */
  dropped: string[];
  stillDeclared: StillDeclared[];
}

/**
 * Compares this node's declarations with those of other nodes. A declaration applies as long as any node has it; if
 * nodes differ, the newest declaration applies. `isSame`: true if the two are equal apart from their positions in their
 * files. `excludes`: true if the two can't both apply.
 */
export function compareDeclarations<Declaration extends { name: string }>(
  declared: readonly Declaration[],
  { stored, elsewhere }: NodeDeclarations<Declaration>,
  {
    isSame,
    excludes,
  }: {
    isSame(one: Declaration, other: Declaration): boolean;
    excludes(one: Declaration, other: Declaration): boolean;
  },
): ComparedDeclarations<Declaration> {
  const storedAs = (own: Declaration) => stored.find(({ declaration }) => isSame(declaration, own));
  const dropped = stored
    .map(({ declaration }) => declaration.name)
    .filter((name) => declared.every((declaration) => declaration.name !== name));
  const own = declared.map((declaration) => ({
    declaration,
    seq: storedAs(declaration)?.seq ?? Number.POSITIVE_INFINITY,
  }));
  const inForce: Declaration[] = [];
  for (const { declaration } of [...own, ...elsewhere].sort((one, other) => other.seq - one.seq)) {
    if (!inForce.some((newer) => excludes(newer, declaration))) inForce.push(declaration);
  }
  const nodesOf = (is: (declaration: Declaration) => boolean) =>
    elsewhere.filter(({ declaration }) => is(declaration)).map(({ node }) => node);
  const stillDeclared = dropped.map((name): StillDeclared => ({ name, nodes: nodesOf((one) => one.name === name) }));
  const differing = declared.map(
    (mine): StillDeclared => ({
      name: mine.name,
      nodes: nodesOf((one) => one.name === mine.name && !isSame(one, mine)),
      inForce: inForce.includes(mine) ? 'own' : 'theirs',
    }),
  );
  return {
    inForce: elsewhere.length === 0 ? [...declared] : inForce.reverse(),
    renewed: declared.filter((declaration) => storedAs(declaration) === undefined),
    dropped,
    stillDeclared: [...stillDeclared, ...differing].filter(({ nodes }) => nodes.length > 0),
  };
}

/**
 * Returns the side that has the newest declaration with this name: this node (`own`) or another one (`theirs`);
 * `undefined` if no node declares it.
 */
export function newestOf(
  name: string,
  { stored, elsewhere }: NodeDeclarations<{ name: string }>,
): 'own' | 'theirs' | undefined {
  const seqOf = (all: readonly StoredDeclaration<{ name: string }>[]) =>
    Math.max(...all.filter(({ declaration }) => declaration.name === name).map(({ seq }) => seq));
  const [own, theirs] = [seqOf(stored), seqOf(elsewhere)];
  if (own === theirs) return undefined; // neither exists
  return own > theirs ? 'own' : 'theirs';
}

/**
 * Returns the refusal to change a record that the configuration declares: the store would no longer match the
 * configuration.
 */
export function refusalOfDeclared(
  what: string,
  { declaredIn }: { declaredIn?: string },
  hint = 'edit the file, then run `rankd reload`, or change the variable and restart; `rankd workspace suspend` stops every key at once',
): RankdError | undefined {
  if (declaredIn === undefined) return undefined;
  return new RankdError('conflict', `${what} is declared in ${declaredIn}; edit it there.`, { hint });
}
