/** The conditions, by the field that asks for each, of those fields that a filter has; `TRUE` where it has none. */
export function whereOf<Field extends string>(
  conditions: Readonly<Record<Field, string>>,
  filter: { readonly [Name in NoInfer<Field>]?: unknown },
): string {
  const asked = (Object.keys(conditions) as Field[]).filter((name) => filter[name] !== undefined);
  return asked.map((name) => conditions[name]).join(' AND ') || 'TRUE';
}

/** The doer by the whole name, or by what is before a colon. */
export const isDoneBy = "(done_by = @by OR substr(done_by, 1, length(@by) + 1) = @by || ':')";
