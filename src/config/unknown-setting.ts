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

/** The candidate that a mistyped name most likely means; `undefined` if none is near. */
export function suggest(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = plain(name);
  const maxEdits = Math.max(1, wanted.length / 4);
  let best: { candidate: string; edits: number } | undefined;
  for (const candidate of candidates) {
    const letters = plain(candidate);
    if (Math.abs(letters.length - wanted.length) > maxEdits) continue; // each letter that is added or missing is an edit
    const edits = editDistance(wanted, letters);
    if (edits <= maxEdits && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { candidate, edits };
  }
  return best?.candidate;
}

/** Drops what people mix up freely: `maxRank`, `max-rank` and `max_rank` are one name. */
function plain(name: string): string {
  return name.slice(0, 64).toLowerCase().replaceAll(/[-_]/g, '');
}

/** Levenshtein: how many letters to add, drop or replace to get from one text to the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const letter of from) {
    const above = row;
    row = [(above[0] ?? 0) + 1];
    for (let index = 0; index < to.length; index += 1) {
      const replaced = (above[index] ?? 0) + (letter === to[index] ? 0 : 1);
      row.push(Math.min(replaced, (above[index + 1] ?? 0) + 1, (row[index] ?? 0) + 1));
    }
  }
  return row.at(-1) ?? 0;
}
