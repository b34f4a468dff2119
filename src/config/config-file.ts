import { isUtf8 } from 'node:buffer';
import { dirname } from 'node:path';
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
  visit,
  type YAMLError,
  type YAMLMap,
} from 'yaml';
import { RankdError } from '../base/errors.ts';
import { readAtMost } from '../base/read-file.ts';
import type { Layer } from './layers.ts';
import { type ConfigLocation, maxConfigBytes, unreadableConfig } from './locate.ts';
import { describeFlaw, type Location, type Problem, pathText } from './problem.ts';
import { sections, settings } from './settings.ts';

export interface ConfigFile extends Layer {
  name: string;
  /** Includes unknown settings; `undefined` if the file is not a valid YAML mapping. */
  content: Record<string, unknown> | undefined;
  /** Locates a setting's name instead of its value. */
  locationOfKey(path: readonly PropertyKey[]): Location;
}

/**
 * Parses the file, but does not validate its values. Throws `config_invalid` or `no_permission` if the file can't be
 * read.
 */
export function readConfigFile(location: ConfigLocation): ConfigFile {
  const lines = new LineCounter();
  const text = readText(location).replace(/^\uFEFF/, '');
  // The parser's messages quote the file, which may contain a misplaced secret, so rankd uses only their codes and
  // positions.
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
    uniqueKeys: false, // YamlEntries finds repeated names faster
  });
  const entries = new YamlEntries(document);

  const lineOf = (offset: number) => lines.linePos(offset).line;
  const locationAt = (offset: number, { isKnown }: { isKnown: boolean }): Location => {
    const { line, col } = lines.linePos(offset);
    const lineText = () => text.slice(lines.lineStarts[line - 1], lines.lineStarts[line]);
    return {
      at: `${location.name}:${line}:${col}`,
      offset,
      excerpt: () => excerpt(lineText(), { line, col, isKnown }),
    };
  };
  const locationOf = (path: readonly PropertyKey[], offset: number): Location => ({
    ...locationAt(offset, { isKnown: true }),
    setting: pathText(path),
  });

  const flaws = onePerLine([...document.errors, ...document.warnings], lineOf);
  const problems: Problem[] = [
    ...flaws.map((flaw) => ({ ...locationAt(flaw.pos[0], { isKnown: false }), text: describeFlaw(flaw) })),
    ...entries.repetitions.map(({ path, first, again }) => ({
      ...locationOf(path, again),
      text: `is set twice, here and on line ${lineOf(first)}`,
    })),
  ];
  const content =
    flaws.length === 0
      ? mappingOf(document, (text, offset) =>
          problems.push({ ...locationAt(offset ?? 0, { isKnown: offset !== undefined }), text }),
        )
      : undefined;
  return {
    source: 'file',
    name: location.name,
    folder: dirname(location.path),
    content,
    values: new Map(settings.flatMap(({ path }) => entryOf(content, path))),
    problems,
    locationOf: (path) => locationOf(path, entries.offsetOf(path, 'value')),
    locationOfKey: (path) => locationOf(path, entries.offsetOf(path, 'key')),
  };
}

function readText({ path, name }: ConfigLocation): string {
  const bytes = readBytes({ path, name });
  if (isUtf8(bytes)) return bytes.toString('utf8');
  const encoding = isUtf16(bytes) ? 'as UTF-16' : 'in an encoding other than UTF-8, such as Latin-1';
  throw new RankdError('config_invalid', `${name} is saved ${encoding}; rankd reads UTF-8.`, {
    hint: 'save the file as UTF-8 in your editor, then try again',
  });
}

function readBytes({ path, name }: ConfigLocation): Buffer {
  try {
    return readAtMost(path, maxConfigBytes);
  } catch (cause) {
    throw unreadableConfig({ path, name }, cause);
  }
}

/** Recognizes UTF-16 by its byte order mark, which Windows editors and PowerShell write. */
function isUtf16(bytes: Buffer): boolean {
  return ['fffe', 'feff'].includes(bytes.toString('hex', 0, 2));
}

interface Repetition {
  path: PropertyKey[];
  first: number;
  again: number;
}

/**
 * Finds repeated names, and looks up the positions of entries by path. Uses an index, because the parser's own check
 * for repeated names searches the whole mapping for each name, which takes minutes for a hundred thousand entries.
 */
class YamlEntries {
  readonly repetitions: Repetition[] = [];
  readonly #document: Document;
  readonly #entries = new Map<YAMLMap, Map<string, Pair>>();

  constructor(document: Document) {
    this.#document = document;
    this.#index(document.contents, []);
  }

  /**
   * Returns the offset of an entry's name or value or, if the entry does not exist, of its closest existing ancestor.
   */
  offsetOf(path: readonly PropertyKey[], part: 'key' | 'value'): number {
    let node: unknown = this.#document.contents;
    let offset = startOf(node) ?? 0;
    path.forEach((segment, depth) => {
      const entry = this.#entryOf(isAlias(node) ? node.resolve(this.#document) : node, segment);
      node = entry?.value;
      const shown = part === 'key' && depth === path.length - 1 ? entry?.key : (entry?.value ?? entry?.key);
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

/**
 * Returns the line with a caret below the problem; `undefined` if nothing on the line can be shown. Shows only the
 * names of settings and, if the caret is at a setting or its value (`isKnown`), one short word there, because anything
 * else may be a secret.
 */
function excerpt(
  lineText: string,
  { line, col, isKnown }: { line: number; col: number; isKnown: boolean },
): string | undefined {
  const before = lineText.slice(0, col - 1).replaceAll('\t', ' ');
  const lead = /^[\s-]*(\w+:\s+)*$/.test(before) ? before : `${/^\s*/.exec(before)?.[0]}… `;
  const word = (isKnown && plainWord.exec(lineText.slice(col - 1))?.[0]) || '…';
  if (!/\w/.test(lead + word)) return undefined;
  const number = String(line).padStart(5);
  return `${number} | ${lead}${word}\n${' '.repeat(number.length)} | ${' '.repeat(lead.length)}${'^'.repeat(word.length)}`;
}

const plainWord = /^([\w.-]{1,24}|"[\w.: -]{1,24}"|'[\w.: -]{1,24}')(?=[\s:,\]}]|$)/;

/** Returns only the first flaw on each line, because the parser reports wrong indentation twice. */
function onePerLine(flaws: YAMLError[], lineOf: (offset: number) => number): YAMLError[] {
  const seen = new Set<number>();
  return flaws.filter(({ pos }) => seen.size < seen.add(lineOf(pos[0])).size);
}

type Report = (text: string, offset?: number) => void;

/**
 * Converts the document to plain data, without empty sections. Reports a document that cannot be converted, and returns
 * `undefined` for it.
 */
function mappingOf(document: Document, report: Report): Record<string, unknown> | undefined {
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null)) return {};
  if (!isMap(contents)) {
    report('expected a mapping of settings, such as `server:` with `port: 7265` below it');
    return undefined;
  }
  try {
    return withoutEmptySections(document.toJS({ maxAliasCount: 100 }));
  } catch {
    const stray = strayAlias(document);
    if (stray === undefined) report('its aliases (*name) expand to too much data');
    else report('an alias (*name) without an anchor (&name) above it', stray);
    return undefined;
  }
}

function strayAlias(document: Document): number | undefined {
  let found: number | undefined;
  visit(document, {
    Alias: (_, node) => {
      if (node.resolve(document) !== undefined) return undefined;
      found = node.range?.[0];
      return visit.BREAK;
    },
  });
  return found;
}

/**
 * Removes null sections and null lists of mappings: YAML parses a section as null if all its settings are commented
 * out.
 */
function withoutEmptySections(mapping: Record<string, unknown>, prefix = ''): Record<string, unknown> {
  const entries = Object.entries(mapping)
    .filter(([name, value]) => !(value === null && (sections.has(prefix + name) || lists.has(prefix + name))))
    .map(
      ([name, value]) => [name, isSection(value) ? withoutEmptySections(value, `${prefix}${name}.`) : value] as const,
    );
  return Object.fromEntries(entries);
}

const lists = new Set(settings.flatMap(({ path, type }) => (type === 'mappings' ? [path] : [])));

function entryOf(content: unknown, path: string): Array<[string, unknown]> {
  let value = content;
  for (const name of path.split('.')) {
    if (!isSection(value) || !Object.hasOwn(value, name)) return [];
    value = value[name];
  }
  return [[path, value]];
}

export function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
