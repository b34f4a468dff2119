import { type Document, isAlias, isMap, isNode, isScalar, isSeq, type Node, type YAMLError } from 'yaml';

/** What a flaw of the document is, in our words: those of the parser can quote the text beside it, which may be a secret. */
export function describeFlaw({ code }: YAMLError): string {
  return flaws[code] ?? `no valid YAML (${code.toLowerCase().replaceAll('_', ' ')})`;
}

const flaws: Partial<Record<YAMLError['code'], string>> = {
  BAD_INDENT: 'no valid YAML: indented unlike the lines around it, or a bracket before is still open',
  BLOCK_AS_IMPLICIT_KEY:
    'no valid YAML: after this value, a line below is indented too far, or a second name: stands on the same line',
  DUPLICATE_KEY: 'this name is given twice in its section',
  MISSING_CHAR: 'no valid YAML: a character is missing here, such as a colon, a comma, a quote or a bracket',
  MULTILINE_IMPLICIT_KEY: 'no valid YAML: a colon is missing here, or a line below is indented too far',
  MULTIPLE_DOCS: 'a second document (---) starts here; only one is allowed',
  TAB_AS_INDENT: 'no valid YAML: indented with a tab; use spaces',
  TAG_RESOLVE_FAILED: 'has a tag (!name); tags mean nothing here',
  UNEXPECTED_TOKEN: 'no valid YAML: this cannot stand here',
};

/** How far into the text an entry begins, or its value; for one that is not there, the nearest entry around it. */
export function offsetOf(document: Document, path: readonly PropertyKey[], what: 'key' | 'value'): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  path.forEach((segment, depth) => {
    const resolved = isAlias(node) ? node.resolve(document) : node;
    const entry = entryOf(resolved, segment);
    node = entry?.value;
    const shown = what === 'key' && depth === path.length - 1 ? entry?.key : (entry?.value ?? entry?.key);
    offset = startOf(shown) ?? offset;
  });
  return offset;
}

function entryOf(node: unknown, segment: PropertyKey): { key: unknown; value: unknown } | undefined {
  if (isSeq(node)) return { key: undefined, value: node.items[Number(segment)] };
  if (!isMap(node)) return undefined;
  return node.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(segment));
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined;
}
