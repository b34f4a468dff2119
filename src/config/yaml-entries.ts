import { type Document, isAlias, isMap, isNode, isScalar, isSeq, type Pair, type YAMLError, type YAMLMap } from 'yaml';

/** A name that a mapping has more than once. */
export interface Repetition {
  path: PropertyKey[];
  /** The offsets in the text of the first of them, and of this one. */
  first: number;
  again: number;
}

/**
 * Where the entries of a document are, by the names that lead to them. They are indexed by name: the parser finds what is given
 * twice by looking through the mapping for each entry, which takes minutes if there are a hundred thousand.
 */
export class YamlEntries {
  readonly repetitions: Repetition[] = [];
  readonly #document: Document;
  readonly #entries = new Map<YAMLMap, Map<string, Pair>>();

  constructor(document: Document) {
    this.#document = document;
    this.#index(document.contents, []);
  }

  /** The offset in the text of an entry, or of its value. If there is no such entry, that of the nearest one around it. */
  offsetOf(path: readonly PropertyKey[], what: 'key' | 'value'): number {
    let node: unknown = this.#document.contents;
    let offset = startOf(node) ?? 0;
    path.forEach((segment, depth) => {
      const entry = this.#entryOf(isAlias(node) ? node.resolve(this.#document) : node, segment);
      node = entry?.value;
      const shown = what === 'key' && depth === path.length - 1 ? entry?.key : (entry?.value ?? entry?.key);
      offset = startOf(shown) ?? offset;
    });
    return offset;
  }

  #index(node: unknown, path: PropertyKey[]): void {
    if (isSeq(node)) node.items.forEach((item, index) => void this.#index(item, [...path, index]));
    if (!isMap(node)) return;
    const entries = new Map<string, Pair>();
    this.#entries.set(node, entries);
    for (const entry of node.items) {
      const name = nameOf(entry);
      const first = entries.get(name);
      if (first === undefined) entries.set(name, entry);
      else {
        const [before = 0, again = 0] = [startOf(first.key), startOf(entry.key)];
        this.repetitions.push({ path: [...path, name], first: before, again });
      }
      this.#index(entry.value, [...path, name]);
    }
  }

  #entryOf(node: unknown, segment: PropertyKey): { key?: unknown; value?: unknown } | undefined {
    if (isSeq(node)) return { value: node.items[Number(segment)] };
    return isMap(node) ? this.#entries.get(node)?.get(String(segment)) : undefined;
  }
}

function nameOf({ key }: Pair): string {
  return String(isScalar(key) ? key.value : key);
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

/** A flaw of the document in our own words. The parser's words can quote the text beside it, which may be a secret. */
export function describeFlaw({ code }: YAMLError): string {
  return flaws[code] ?? `no valid YAML (${code.toLowerCase().replaceAll('_', ' ')})`;
}

const flaws: Partial<Record<YAMLError['code'], string>> = {
  BAD_INDENT: 'no valid YAML: indented unlike the lines around it, or a bracket before is still open',
  BLOCK_AS_IMPLICIT_KEY:
    'no valid YAML: after this value, a line below is indented too far, or a second name: stands on the same line',
  MISSING_CHAR: 'no valid YAML: a character is missing here, such as a colon, a comma, a quote or a bracket',
  MULTILINE_IMPLICIT_KEY: 'no valid YAML: a colon is missing here, or a line below is indented too far',
  MULTIPLE_DOCS: 'a second document (---) starts here; only one is allowed',
  TAB_AS_INDENT: 'no valid YAML: indented with a tab; use spaces',
  TAG_RESOLVE_FAILED: 'has a tag (!name); tags mean nothing here',
  UNEXPECTED_TOKEN: 'no valid YAML: this cannot stand here',
};
