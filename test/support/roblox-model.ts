import type { GameScript } from '../game/game.ts';

export interface ModelItem {
  class: string;
  properties: Record<string, string>;
  children: ModelItem[];
}

/** Parses a model in Roblox's XML format. Throws if it is not well-formed or has unknown parts. */
export function parseModel(xml: string): ModelItem[] {
  if (/[^\t\n\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(xml))
    throw new Error('a character that XML does not allow');
  const reader = new Reader(xml);
  reader.tag('<roblox version="4">');
  const items = itemsOf(reader, new Set());
  reader.tag('</roblox>');
  reader.end();
  return items;
}

export function scriptsOf(items: ModelItem[], above: string[] = []): GameScript[] {
  return items.flatMap(({ class: kind, properties: { Name = '', Source = '' }, children }) => {
    const path = [...above, Name];
    const own = kind === 'Script' || kind === 'ModuleScript' ? [{ class: kind, path, source: Source } as const] : [];
    return [...own, ...scriptsOf(children, path)];
  });
}

function itemsOf(reader: Reader, referents: Set<string>): ModelItem[] {
  const items: ModelItem[] = [];
  for (let begin = reader.match(/<Item class="(\w+)" referent="(\w+)">/y); begin; ) {
    const [, kind = '', referent = ''] = begin;
    if (referents.has(referent)) throw new Error(`two items have the referent ${referent}`);
    referents.add(referent);
    reader.tag('<Properties>');
    const properties: Record<string, string> = {};
    for (let open = reader.match(/<(string|ProtectedString) name="(\w+)">/y); open; ) {
      const [, type = '', name = ''] = open;
      if (name in properties) throw new Error(`two properties ${name}`);
      properties[name] = reader.textUntil(`</${type}>`);
      open = reader.match(/<(string|ProtectedString) name="(\w+)">/y);
    }
    reader.tag('</Properties>');
    items.push({ class: kind, properties, children: itemsOf(reader, referents) });
    reader.tag('</Item>');
    begin = reader.match(/<Item class="(\w+)" referent="(\w+)">/y);
  }
  return items;
}

class Reader {
  readonly #xml: string;
  #at = 0;

  constructor(xml: string) {
    this.#xml = xml;
  }

  /** Matches the pattern after any white space, and moves past the match. */
  match(pattern: RegExp): RegExpExecArray | null {
    const blanks = /\s*/y;
    blanks.lastIndex = this.#at;
    blanks.exec(this.#xml);
    pattern.lastIndex = blanks.lastIndex;
    const found = pattern.exec(this.#xml);
    if (found !== null) this.#at = pattern.lastIndex;
    return found;
  }

  tag(text: string): void {
    const pattern = new RegExp(text.replaceAll(/[<>/."=]/g, String.raw`\$&`), 'y');
    if (this.match(pattern) === null) throw new Error(`${text} is not at ${this.#xml.slice(this.#at, this.#at + 60)}`);
  }

  /** Reads the text up to a closing tag, with or without CDATA sections. */
  textUntil(closing: string): string {
    let text = '';
    for (;;) {
      const rest = this.#xml.slice(this.#at);
      const [piece, section, plain = ''] = /^<!\[CDATA\[([\s\S]*?)\]\]>|^([^<>&]+|&(?:lt|gt|amp);)/.exec(rest) ?? [];
      if (piece === undefined) break;
      text += section ?? { '&lt;': '<', '&gt;': '>', '&amp;': '&' }[plain] ?? plain;
      this.#at += piece.length;
    }
    if (!this.#xml.startsWith(closing, this.#at)) throw new Error(`${closing} is missing`);
    this.#at += closing.length;
    return text;
  }

  end(): void {
    if (this.#xml.slice(this.#at).trim() !== '') throw new Error('there is more after the end');
  }
}
