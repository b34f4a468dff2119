import { table } from './table.ts';

/** One thing for a person: a line for each field of its document that has a value. */
export function facts(document: Record<string, unknown>): string {
  const present = Object.entries(document).filter(([, value]) => value !== null);
  const rows = present.map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : String(value)]);
  return table(['field', 'value'], rows);
}
