import { suggest } from '../base/suggest.ts';
import { keyFile, keyVariable } from './platform-key.ts';
import { keySettings, sections, settings } from './settings.ts';

/** The message for a name that is not a setting: `unknown setting`, with the setting that was probably meant. */
export function unknownSetting(path: string): string {
  const ofKey = /^keys\.\d+\.(.+)$/.exec(path)?.[1];
  if (ofKey !== undefined) return unknownKeySetting(ofKey);
  if (namesSecret(path)) {
    return `unknown setting; a secret never goes here: name its file in ${keyFile} or set ${keyVariable}`;
  }
  return withSuggestion(
    'unknown setting',
    misplaced(path) ?? suggest(path, [...settings.map(({ path }) => path), ...sections]),
  );
}

function unknownKeySetting(name: string): string {
  if (namesSecret(name))
    return 'unknown setting; a secret never goes here: its hash does, as `rankd key hash -` prints it';
  return withSuggestion(
    'unknown setting',
    suggest(
      name,
      keySettings.map(({ path }) => path),
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
export const otherVariables = ['RANKD_CONFIG', 'RANKD_DATA_DIR', keyVariable];

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
