/** The conditions, by the field that asks for each, of those fields that a filter has; `TRUE` where it has none. */
export function whereOf<Field extends string>(
  conditions: Readonly<Record<Field, string>>,
  filter: { readonly [Name in NoInfer<Field>]?: unknown },
): string {
  const asked = (Object.keys(conditions) as Field[]).filter((name) => filter[name] !== undefined);
  return asked.map((name) => conditions[name]).join(' AND ') || 'TRUE';
}
