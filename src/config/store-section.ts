import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import type { StoreSettings } from './store-choice.ts';

/** The section `store` of a file. The parser's errors quote the text around them, so none is shown: what can't be parsed has no section. */
export function storeSection(path: string): StoreSettings {
  const document = parseDocument(readFileSync(path, 'utf8'), { logLevel: 'silent', prettyErrors: false });
  const text = (name: keyof StoreSettings) => {
    const value: unknown = document.getIn(['store', name]);
    return value === undefined || value === null ? undefined : String(value);
  };
  return { url: text('url'), password_file: text('password_file'), ca_file: text('ca_file'), tls: text('tls') };
}
