import { systemClock } from '../../base/clock.ts';
import { localTime } from '../../base/time.ts';
import type { Io } from '../io.ts';

/** The other screen, without a cursor, and lines that are cut where the screen ends. */
const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const leave = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const home = '\u001b[H';
const eraseToEndOfLine = '\u001b[K';
const eraseBelow = '\u001b[J';

/** A terminal's other screen, for what is shown again and again: as much as it has room for. What was there before comes back. */
export class WatchScreen implements Disposable {
  readonly #io: Pick<Io, 'stdout' | 'screenSize'>;

  constructor(io: Pick<Io, 'stdout' | 'screenSize'>) {
    this.#io = io;
    io.stdout(enter);
  }

  /** Shows the first lines of `text`, which matter most, and when that was. */
  show(text: string): void {
    const lines = text.split('\n');
    const room = (this.#io.screenSize?.rows ?? lines.length + 1) - 1;
    const left = lines.length - room;
    const shown = left > 0 ? [...lines.slice(0, room - 1), `… ${left + 1} more lines`] : lines;
    const all = [...shown, `looked at ${localTime(systemClock.now())}, Ctrl-C ends it`];
    this.#io.stdout(`${home}${all.map((line) => line + eraseToEndOfLine).join('\n')}${eraseBelow}`);
  }

  [Symbol.dispose](): void {
    this.#io.stdout(leave);
  }
}
