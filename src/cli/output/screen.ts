import { type Paints, paints, plain } from '../../base/paint.ts';
import type { Io } from '../io.ts';

/** Where a result is shown to a person. A pipe or a file is no screen: it gets everything, without colors, with times in UTC. */
export interface Screen {
  /** How wide it is; undefined if it does not tell. */
  columns: number | undefined;
  paint: Paints;
  /** Epoch milliseconds, which times are told from. */
  now: number;
}

/** Text whose shape depends on where it is shown. It holds no control characters but those of colors. */
export type Shown = (screen?: Screen) => string;

export type Cell = string | Shown;

/** How a pipe or a file is written to. */
export const noScreen = { columns: undefined, paint: plain };

export function screenOf(io: Pick<Io, 'stdoutIsTerminal' | 'screenSize' | 'env'>, now: number): Screen | undefined {
  if (!io.stdoutIsTerminal) return undefined;
  return { columns: io.screenSize?.columns, paint: isColored(io.env) ? paints : plain, now };
}

/** https://no-color.org, and FORCE_COLOR as Node.js reads it, which has the last word. */
export function isColored(env: Record<string, string | undefined>): boolean {
  const { NO_COLOR: no = '', FORCE_COLOR: force, TERM: terminal } = env;
  if (force !== undefined) return force !== '0' && force !== 'false';
  return no === '' && terminal !== 'dumb';
}
