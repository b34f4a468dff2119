import { effectiveStates, openChangeStates } from '../core/model.ts';

/** The WHERE clause of a filter: the conditions of the fields that are set, joined by AND. It is `TRUE` if none is. */
export function whereOf<Field extends string>(
  conditions: Readonly<Record<Field, string>>,
  filter: { readonly [Name in NoInfer<Field>]?: unknown },
): string {
  const asked = (Object.keys(conditions) as Field[]).filter((name) => filter[name] !== undefined);
  return asked.map((name) => conditions[name]).join(' AND ') || 'TRUE';
}

/** Matches a row in one of these states. */
export function inStates(states: readonly string[]): string {
  return `state IN (${states.map((state) => `'${state}'`).join(', ')})`;
}

export const isOpenChange = inStates(openChangeStates);

/** Matches a change whose writes the platform may have taken. */
export const mayHaveChanged = inStates(effectiveStates);

/** Matches who did something by the whole name, or by the part before a colon. */
export const isDoneBy = "(done_by = @by OR substr(done_by, 1, length(@by) + 1) = @by || ':')";
