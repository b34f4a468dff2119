import { suggest } from '../base/suggest.ts';
import { keyFile, keyVariable } from './platform-key.ts';
import { type EntrySetting, keySettings, sections, settings, webhookSettings } from './settings.ts';
import { passwordVariable } from './store-choice.ts';

/** The message for a name that is not a setting: `unknown setting`, with the setting that was probably meant. */
export function unknownSetting(path: string): string {
  const entry = /^(keys|webhooks\.targets)\.\d+\.(.+)$/.exec(path);
  if (entry !== null) return unknownEntrySetting(entry[2] ?? '', entry[1] === 'keys' ? ofKeys : ofTargets);
  if (namesSecret(path)) {
    if (path.startsWith('store.'))
      return `unknown setting; a secret never goes here: name its file in store.password_file or set ${passwordVariable}`;
    return `unknown setting; a secret never goes here: name its file in ${keyFile} or set ${keyVariable}`;
  }
  return withSuggestion(
    'unknown setting',
    misplaced(path) ?? suggest(path, [...settings.map(({ path }) => path), ...sections]),
  );
}

const ofKeys = { known: keySettings, secret: 'its hash does, as `rankd key hash -` prints it' };
const ofTargets = { known: webhookSettings, secret: 'name its file in url_file or secret_file' };

function unknownEntrySetting(
  name: string,
  { known, secret }: { known: readonly EntrySetting[]; secret: string },
): string {
  if (namesSecret(name) || /^(url|address)$/i.test(name)) return `unknown setting; a secret never goes here: ${secret}`;
  return withSuggestion(
    'unknown setting',
    suggest(
      name,
      known.map(({ path }) => path),
    ),
  );
}

export function unknownVariable(name: string): string {
  const known = [...settings.flatMap(({ env }) => env ?? []), ...otherVariables];
  const unprefixed = name.slice('RANKD'.length);
  return withSuggestion(
    'matches no setting',
    named(known.filter((env) => env.endsWith(unprefixed))) ?? suggest(name, known),
  );
}

/** Variables that are read elsewhere, or that hold what does not belong in the file. */
export const otherVariables = ['RANKD_CONFIG', 'RANKD_DATA_DIR', keyVariable, passwordVariable];

function withSuggestion(text: string, suggestion: string | undefined): string {
  return suggestion === undefined ? text : `${text}; did you mean ${suggestion}?`;
}

function namesSecret(path: string): boolean {
  return /(key|secret|token|password|credential)$/i.test(path);
}

/** The settings of that name in other sections. */
function misplaced(path: string): string | undefined {
  const name = path.slice(path.lastIndexOf('.') + 1);
  return named(settings.map(({ path }) => path).filter((path) => path.endsWith(`.${name}`)));
}

function named(found: string[]): string | undefined {
  return found.length > 0 && found.length <= maxNamed ? found.join(' or ') : undefined;
}

const maxNamed = 3;
