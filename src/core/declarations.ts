/** A declaration as a node keeps it. `seq` rises with each that is made: of two of a name, the higher one holds. */
export interface KeptDeclaration<Declaration> {
  declaration: Declaration;
  seq: number;
}

/** What this node declared last, and what other nodes that are alive declare. Both are empty if one daemon alone works on the store. */
export interface NodeDeclarations<Declaration> {
  kept: readonly KeptDeclaration<Declaration>[];
  elsewhere: ReadonlyArray<KeptDeclaration<Declaration> & { node: string }>;
}

/** What other nodes declare and this one does not, or otherwise. `inForce`: whose declaration holds, if this node has one. */
export interface StillDeclared {
  name: string;
  nodes: string[];
  inForce?: 'own' | 'theirs';
}

/** What becomes of what a configuration declares, beside what other nodes declare. */
export interface ComparedDeclarations<Declaration> {
  /** What holds from now on, oldest first. */
  inForce: Declaration[];
  /** What this node declares otherwise than before, and the names that it declares no longer. */
  renewed: Declaration[];
  dropped: string[];
  stillDeclared: StillDeclared[];
}

/**
 * What is declared holds while any node declares it, by the newest of their declarations. `isSame`: both declare the same, wherever that
 * stands in their files. `excludes`: both can't hold.
 */
export function compareDeclarations<Declaration extends { name: string }>(
  declared: readonly Declaration[],
  { kept, elsewhere }: NodeDeclarations<Declaration>,
  {
    isSame,
    excludes,
  }: {
    isSame(one: Declaration, other: Declaration): boolean;
    excludes(one: Declaration, other: Declaration): boolean;
  },
): ComparedDeclarations<Declaration> {
  const keptAs = (own: Declaration) => kept.find(({ declaration }) => isSame(declaration, own));
  const dropped = kept
    .map(({ declaration }) => declaration.name)
    .filter((name) => declared.every((declaration) => declaration.name !== name));
  const own = declared.map((declaration) => ({
    declaration,
    seq: keptAs(declaration)?.seq ?? Number.POSITIVE_INFINITY,
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
    renewed: declared.filter((declaration) => keptAs(declaration) === undefined),
    dropped,
    stillDeclared: [...stillDeclared, ...differing].filter(({ nodes }) => nodes.length > 0),
  };
}

/** Whose declaration of this name is the newest; `undefined` if nobody declares it. */
export function newestOf(
  name: string,
  { kept, elsewhere }: NodeDeclarations<{ name: string }>,
): 'own' | 'theirs' | undefined {
  const seqOf = (all: readonly KeptDeclaration<{ name: string }>[]) =>
    Math.max(...all.filter(({ declaration }) => declaration.name === name).map(({ seq }) => seq));
  const [own, theirs] = [seqOf(kept), seqOf(elsewhere)];
  if (own === theirs) return undefined; // there is none
  return own > theirs ? 'own' : 'theirs';
}
