import { type Paints, paints, plain } from '../../base/paint.ts';
import { isoTime, localDay, localTime } from '../../base/time.ts';
import type { Io } from '../io.ts';
import { displayWidth, fitted, printable, wrapped } from './text.ts';

/** Shows a document with one line for each field that is not null. */
export function facts(document: Record<string, unknown>): Shown {
  const present = Object.entries(document).filter(([, value]) => value !== null);
  return card(present.map(([name, value]) => [name, cellOf(value)]));
}

export function cellOf(value: unknown): Cell {
  if (typeof value === 'function') return value as Shown;
  if (typeof value === 'string' && isoPattern.test(value)) return when(Date.parse(value));
  return Array.isArray(value) ? value.join(', ') : String(value);
}

const isoPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Returns a readable label for a field, e.g. `roles before` for `rolesBefore`. */
export function labelOf(field: string): string {
  if (!/^[a-z]+([A-Z][a-z]+)+$/.test(field)) return field; // already a label
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

/** Shows a name and a value on each line. On a screen, leaves out the headings. */
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
 * Formats aligned columns with headings; empty if there are no rows. On a screen, omits empty columns, and the headings
 * of a list of checks. If only the last column does not fit, truncates or wraps it; otherwise, moves all columns that
 * do not fit to lines below their row.
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

/** The columns whose cells are colored as states. The column with check results has an empty heading. */
const states = ['', 'state', 'outcome', 'active', 'Roblox key', 'database', 'game keys', 'rank changes'];

function cellPainted(paint: Paints, name: string, cell: string): string {
  if (name === 'id') return paint.dimmed(cell);
  return states.includes(name) ? paint.state(cell) : cell;
}

interface Grid {
  texts: string[][];
  /** The available width; undefined if unlimited. */
  columns: number | undefined;
  wrapsLast: boolean;
  /** The labels of columns that are shown below a row. */
  names?: string[];
  paint: Paints;
}

type CellPainter = (cell: string, row: string[], column: number) => string;

const gap = '  ';
/** The minimum width of a truncated or wrapped last column. If less is available, the column moves below its row. */
const minLastColumns = 20;

function lines(grid: Grid, painted: CellPainter): string {
  const { texts, columns = Number.POSITIVE_INFINITY, wrapsLast, names = [], paint } = grid;
  const [first = []] = texts;
  const widths = first.map((_, column) => Math.max(...texts.map((row) => displayWidth(row[column] ?? ''))));
  const { beside, last } = fitColumns(widths, columns, names.at(-1) === 'id');
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
      ...below.map((text) => paint.dimmed(text)),
    ];
  };
  return texts.flatMap(linesOf).join('\n');
}

/** Determines how many columns fit next to each other, and the width of the last one. Never truncates an id. */
function fitColumns(widths: number[], columns: number, endsWithId: boolean): { beside: number; last: number } {
  const endOf = (count: number) => widths.slice(0, count).reduce((sum, width) => sum + width + gap.length, -gap.length);
  const all = widths.length;
  if (endOf(all) <= columns) return { beside: all, last: Number.POSITIVE_INFINITY };
  const left = columns - endOf(all - 1) - gap.length;
  if (left >= minLastColumns && !endsWithId) return { beside: all, last: left };
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

/** A terminal that shows a result. A pipe or a file gets all columns, no colors, and times in UTC instead. */
export interface Screen {
  /** The terminal's width; undefined if unknown. */
  columns: number | undefined;
  paint: Paints;
  /** Epoch milliseconds, for relative times. */
  now: number;
}

/** Text whose layout depends on the output. Contains no control characters except colors and line breaks. */
export type Shown = (screen?: Screen) => string;

export type Cell = string | Shown;

export const noScreen = { columns: undefined, paint: plain };

export function screenOf(io: Pick<Io, 'stdoutIsTerminal' | 'screenSize' | 'env'>, now: number): Screen | undefined {
  if (!io.stdoutIsTerminal) return undefined;
  return { columns: io.screenSize?.columns, paint: isColored(io.env) ? paints : plain, now };
}

/** Follows https://no-color.org, but FORCE_COLOR takes precedence, as in Node.js. */
export function isColored(env: Record<string, string | undefined>): boolean {
  const { NO_COLOR: no = '', FORCE_COLOR: force, TERM: terminal } = env;
  if (force !== undefined) return force !== '0' && force !== 'false';
  return no === '' && terminal !== 'dumb';
}

/** Formats a time: short and local on a screen, e.g. `today 16:01`; complete and in UTC elsewhere. */
export function when(epochMs: number | undefined | null): Cell {
  if (epochMs === undefined || epochMs === null) return '-';
  return (screen) => timeText(epochMs, screen);
}

export function timeText(epochMs: number, screen: Screen | undefined): string {
  return screen === undefined ? isoTime(epochMs) : shortTime(epochMs, screen.now);
}

/** Formats a recent time relative to now, e.g. `15 min ago`, and any other time as `when` does. */
export function ago(epochMs: number | undefined | null): Cell {
  if (epochMs === undefined || epochMs === null) return '-';
  return (screen) => {
    const minutes = screen && Math.floor((screen.now - epochMs) / 60_000);
    if (minutes === undefined || minutes < 0 || minutes >= 60) return timeText(epochMs, screen);
    return minutes === 0 ? 'just now' : `${minutes} min ago`;
  };
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Formats a local time, e.g. `today 16:01`, `yesterday 16:01`, `24 Nov 16:01`, `24 Nov 2025`. */
function shortTime(epochMs: number, now: number): string {
  const at = new Date(epochMs);
  const time = localTime(epochMs).slice(0, 5);
  const nearbyDay = [-1, 0, 1].find((days) => localDay(epochMs) === localDay(dayFrom(now, days)));
  if (nearbyDay !== undefined) return `${nearbyDay === 0 ? 'today' : nearbyDay < 0 ? 'yesterday' : 'tomorrow'} ${time}`;
  const day = `${at.getDate()} ${months[at.getMonth()]}`;
  return at.getFullYear() === new Date(now).getFullYear() ? `${day} ${time}` : `${day} ${at.getFullYear()}`;
}

/** Uses the calendar, because some days have 23 or 25 hours. */
function dayFrom(now: number, days: number): number {
  const at = new Date(now);
  return at.setDate(at.getDate() + days);
}
