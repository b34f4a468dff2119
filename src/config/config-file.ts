import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Document, isMap, isScalar, LineCounter, parseDocument, visit, type YAMLError } from 'yaml';
import { codeOf } from '../base/error-code.ts';
import { RankdError } from '../base/errors.ts';
import type { Layer } from './layer.ts';
import type { ConfigLocation } from './locate.ts';
import { excerpt, type Location, type Problem } from './problem.ts';
import { sections, settings } from './settings.ts';
import { missingConfig } from './trusted-config.ts';
import { describeFlaw, YamlEntries } from './yaml-entries.ts';

/** `rankd.yaml` as read. */
export interface ConfigFile extends Layer {
  /** The name that messages use. */
  name: string;
  /** The whole mapping, unknown settings included; `undefined` if it is not a YAML mapping, or can't be read. */
  content: Record<string, unknown> | undefined;
  /** Where a setting is named. */
  locationOfKey(path: readonly PropertyKey[]): Location;
}

/** Reads the file without judging its values. Throws `config_invalid` or `no_permission` if it can't be read at all. */
export function readConfigFile(location: ConfigLocation): ConfigFile {
  const lines = new LineCounter();
  const text = readText(location).replace(/^\uFEFF/, '');
  // The parser's errors quote the text around them, which may be a secret: only their code and position are used.
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
    uniqueKeys: false, // YamlEntries looks for them in one pass
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
      text: `is given twice, here and in line ${lineOf(first)}`,
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

/** The parser reports one wrong indentation twice. */
function onePerLine(flaws: YAMLError[], lineOf: (offset: number) => number): YAMLError[] {
  const seen = new Set<number>();
  return flaws.filter(({ pos }) => seen.size < seen.add(lineOf(pos[0])).size);
}

/** e.g. `group.ladder[2]`. */
function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((segment) => (typeof segment === 'number' ? `[${segment}]` : `.${shown(String(segment))}`))
    .join('')
    .slice(1);
}

/** A long or odd name can be a secret in the wrong place, or hold characters that a terminal obeys. */
function shown(name: string): string {
  return /^[\w <-]{1,32}$/.test(name) ? name : '(something that is no name)';
}

function readText({ path, name }: ConfigLocation): string {
  const bytes = readBytes({ path, name });
  if (bytes.length > maxBytes) {
    throw new RankdError('config_invalid', `${name} has ${bytes.length} bytes; rankd reads at most ${maxBytes}.`, {
      hint: 'name the right file with --config; make thousands of game keys with `rankd key create` instead',
    });
  }
  if (!isUtf16(bytes)) return bytes.toString('utf8');
  throw new RankdError('config_invalid', `${name} is saved as UTF-16; rankd reads UTF-8.`, {
    hint: 'save the file as UTF-8 in your editor, then run the command again',
  });
}

/** Every command reads the file, and can't be stopped while it does. 8000 declared keys take less. */
const maxBytes = 1_000_000;

function readBytes({ path, name }: ConfigLocation): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw unreadable(name, cause);
  }
}

/** Recognizes UTF-16 by its byte order mark, which editors and PowerShell on Windows write. */
function isUtf16(bytes: Buffer): boolean {
  return ['fffe', 'feff'].includes(bytes.toString('hex', 0, 2));
}

function unreadable(name: string, cause: unknown): RankdError {
  const code = codeOf(cause);
  if (code === 'ENOENT' || code === 'ENOTDIR') return missingConfig(name, cause);
  if (code === 'EACCES' || code === 'EPERM') {
    const hint = 'run as the user rankd runs as, or let this user read the file';
    return new RankdError('no_permission', `This user may not read the configuration file ${name}.`, {
      hint,
      cause,
    });
  }
  if (code === 'EISDIR') {
    const hint = 'stop the container, remove the folder, put the file there, and start it again';
    return new RankdError(
      'config_invalid',
      `${name} is a folder, and no file; Docker makes one if the file is missing.`,
      {
        hint,
        cause,
      },
    );
  }
  const hint = 'name a readable YAML file';
  return new RankdError('config_invalid', `The configuration file ${name} cannot be read (${code}).`, { hint, cause });
}

type Report = (text: string, offset?: number) => void;

/** The document as plain data, without empty sections. `undefined` if it is not a mapping; then the reason was reported. */
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
    if (stray === undefined) report('its aliases (*name) stand for too much');
    else report('an alias (*name) for which nothing above has the anchor (&name)', stray);
    return undefined;
  }
}

/** Where the first alias is that stands for nothing. */
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

/** If all settings of a section are commented out, YAML reads null. Whoever wrote it means an empty section. */
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

/** True for a mapping. */
export function isSection(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
