import type { Paints } from '../../base/paint.ts';
import { printable } from './safe-text.ts';
import { type Cell, noScreen, type Screen, type Shown } from './screen.ts';
import { when } from './when.ts';
import { displayWidth, fitted, wrapped } from './width.ts';

/** One thing for a person: a line for each field of its document that has a value. */
export function facts(document: Record<string, unknown>): Shown {
  const present = Object.entries(document).filter(([, value]) => value !== null);
  return card(present.map(([name, value]) => [name, cellOf(value)]));
}

export function cellOf(value: unknown): Cell {
  if (typeof value === 'function') return value as Shown;
  if (typeof value === 'string' && isoPattern.test(value)) return when(Date.parse(value));
  return Array.isArray(value) ? value.join(', ') : String(value);
}

/** As documents have times. */
const isoPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** What a field of a document is called for a person, e.g. `roles before` for `rolesBefore`. */
export function labelOf(field: string): string {
  if (!/^[a-z]+([A-Z][a-z]+)+$/.test(field)) return field; // no field's name, but words
  return labels[field] ?? field.replace(/At$/, '').replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

const labels: Record<string, string> = {
  memberCount: 'members',
  ownerId: 'owner',
  rankeeId: 'member',
  rankeeName: 'member name',
  rankerId: 'asked by (id)',
  rankerName: 'asked by',
  newRankId: 'new rank',
};

/** A name and a value on each line. On a screen that needs no headings. */
export function card(rows: Array<[name: string, value: Cell]>): Shown {
  return (screen) => {
    const labelled = rows.map(([name, value]): Cell[] => [labelOf(name), value]);
    if (screen === undefined) return table(['field', 'value'], labelled)();
    const texts = labelled.map((row) => textsOf(row, screen));
    const { columns, paint } = screen;
    return lines({ texts, columns, wrapsLast: true, paint }, (cell, [name = ''], column) =>
      column === 0 ? cell : cellPainted(paint, name, cell),
    );
  };
}

/**
 * Aligned columns under their headings; the last column is not padded. No heading line without rows. On a screen, columns without a
 * value are left out, and the headings of a list of checks. What does not fit then stands below its row; if that is the last column alone, it is cut, or wrapped.
 */
export function table(headings: string[], rows: Cell[][], { wrapsLast = false } = {}): Shown {
  return (screen) => {
    if (rows.length === 0) return '';
    const texts = rows.map((row) => textsOf(row, screen));
    const isUsed = (column: number) => screen === undefined || texts.some((row) => !isEmpty(row[column]));
    const used = (row: string[]) => row.filter((_, column) => isUsed(column));
    const names = used(headings);
    const head = names.map((name) => name.toUpperCase());
    const { columns, paint } = screen ?? noScreen;
    const grid = { texts: [head, ...texts.map(used)], columns, wrapsLast, names, paint };
    const text = lines(grid, (cell, row, column) =>
      row === head ? paint.heading(cell) : cellPainted(paint, names[column] ?? '', cell),
    );
    return screen !== undefined && names[0] === '' ? text.slice(text.indexOf('\n') + 1) : text;
  };
}

function textsOf(row: Cell[], screen: Screen | undefined): string[] {
  return row.map((cell) => printable(typeof cell === 'string' ? cell : cell(screen)));
}

function isEmpty(cell: string | undefined): boolean {
  return cell === undefined || cell === '' || cell === '-';
}

/** What holds a state, by its heading or name; the grades of a check have none. */
const states = ['', 'state', 'outcome', 'active', 'Roblox key', 'database', 'game keys', 'rank changes'];

function cellPainted(paint: Paints, name: string, cell: string): string {
  if (name === 'id') return paint.aside(cell);
  return states.includes(name) ? paint.state(cell) : cell;
}

interface Grid {
  texts: string[][];
  /** The width to fit; undefined if there is none. */
  columns: number | undefined;
  wrapsLast: boolean;
  /** What the columns are called below a row. */
  names?: string[];
  paint: Paints;
}

type CellPainter = (cell: string, row: string[], column: number) => string;

const gap = '  ';
/** A last column that would be narrower stands below its row. */
const leastColumns = 20;

function lines(grid: Grid, painted: CellPainter): string {
  const { texts, columns = Number.POSITIVE_INFINITY, wrapsLast, names = [], paint } = grid;
  const [first = []] = texts;
  const widths = first.map((_, column) => Math.max(...texts.map((row) => displayWidth(row[column] ?? ''))));
  const { beside, last } = arrange(widths, columns, names.at(-1) === 'id');
  const start = widths.slice(0, beside - 1).reduce((sum, width) => sum + width + gap.length, 0);
  const linesOf = (row: string[]) => {
    const ending = row[beside - 1] ?? '';
    const [end = '', ...more] = wrapsLast ? wrapped(ending, last) : [fitted(ending, last)];
    const cells = [...row.slice(0, beside - 1), end].map(
      (cell, column) =>
        painted(cell, row, column) + ' '.repeat(Math.max(0, (widths[column] ?? 0) - displayWidth(cell))),
    );
    const below = row === first ? [] : fieldsBelow(names.slice(beside), row.slice(beside), columns);
    return [
      cells.join(gap).trimEnd(),
      ...more.map((text) => ' '.repeat(start) + text),
      ...below.map((text) => paint.aside(text)),
    ];
  };
  return texts.flatMap(linesOf).join('\n');
}

/** How many columns stand beside each other, and how wide the last of them may be. An id is whole, so that it can be copied. */
function arrange(widths: number[], columns: number, endsWithId: boolean): { beside: number; last: number } {
  const endOf = (count: number) => widths.slice(0, count).reduce((sum, width) => sum + width + gap.length, -gap.length);
  const all = widths.length;
  if (endOf(all) <= columns) return { beside: all, last: Number.POSITIVE_INFINITY };
  const left = columns - endOf(all - 1) - gap.length;
  if (left >= leastColumns && !endsWithId) return { beside: all, last: left };
  const fitting = widths.filter((_, column) => endOf(column + 1) <= columns).length;
  return { beside: Math.max(1, fitting), last: columns };
}

function fieldsBelow(names: string[], values: string[], columns: number): string[] {
  const fields = names.flatMap((name, column) => (isEmpty(values[column]) ? [] : [`${name}: ${values[column]}`]));
  const width = columns - gap.length;
  return fields.length === 0
    ? []
    : wrapped(fields.join(' · '), width, ' · ').flatMap((line) => wrapped(line, width).map((text) => gap + text));
}
