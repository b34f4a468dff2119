import { readFileSync } from 'node:fs';
import { parseDocument } from 'yaml';
import { codeOf } from '../base/error-code.ts';
import { RankdError } from '../base/errors.ts';
import type { ConfigLocation } from './locate.ts';
import type { StoreSettings } from './store-choice.ts';

/** What keeps a command from knowing where the store is; `setting` is its name within the section, or empty. */
interface SectionProblem {
  setting: string;
  text: string;
}

/**
 * The section `store` of a file. Where it is not as it has to be, no command may fall back on SQLite, or on a connection without TLS. The
 * parser's errors quote the text around them, so none is shown.
 */
export function storeSection({ path, name }: ConfigLocation): { settings: StoreSettings; problems: SectionProblem[] } {
  const text = textOf({ path, name });
  const document = documentIn(text);
  if (document === 'invalid') {
    const isServer = /^[^#]*\bpostgres(ql)?:\/\//im.test(text);
    return { settings: {}, problems: isServer ? [{ setting: '', text: invalid }] : [] };
  }
  const section: unknown = document?.store;
  if (section === undefined || section === null) return { settings: {}, problems: [] };
  if (typeof section !== 'object' || Array.isArray(section))
    return { settings: {}, problems: [{ setting: '', text: 'expected a mapping of settings' }] };
  const entries = Object.entries(section).filter(([, value]) => value !== null);
  const problems = entries.flatMap(([setting, value]) => {
    if (!known.has(setting)) return [{ setting, text: 'unknown setting' }];
    return typeof value === 'string' ? [] : [{ setting, text: 'expected a text' }];
  });
  return { settings: Object.fromEntries(entries.filter(([, value]) => typeof value === 'string')), problems };
}

const known = new Set(['url', 'password_file', 'ca_file', 'tls', 'node']);

const invalid = 'is no valid YAML, so its section store is not known; rankd config check says where it is wrong';

function documentIn(text: string): { store?: unknown } | null | 'invalid' {
  const document = parseDocument(text, { logLevel: 'silent', prettyErrors: false });
  if (document.errors.length > 0) return 'invalid';
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    return 'invalid';
  }
}

function textOf({ path, name }: ConfigLocation): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (cause) {
    if (codeOf(cause) !== 'EACCES') throw cause;
    throw new RankdError(
      'no_permission',
      `${name} may not be read by this user, so it is not known where the store is.`,
      {
        hint: 'run rankd as the user of the service: sudo -u rankd rankd …',
        cause,
      },
    );
  }
}
