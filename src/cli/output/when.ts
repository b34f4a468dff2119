import { isoTime, localDay, localTime } from '../../base/time.ts';
import type { Cell, Screen } from './screen.ts';

/** A time: short and local for a person, e.g. `today 16:01`; in UTC and whole where a script may read it. */
export function when(epochMs: number | undefined | null): Cell {
  if (epochMs === undefined || epochMs === null) return '-';
  return (screen) => timeText(epochMs, screen);
}

export function timeText(epochMs: number, screen: Screen | undefined): string {
  return screen === undefined ? isoTime(epochMs) : shortTime(epochMs, screen.now);
}

/** As `when`, for what happened lately, e.g. `15 min ago`. */
export function ago(epochMs: number | undefined | null): Cell {
  if (epochMs === undefined || epochMs === null) return '-';
  return (screen) => {
    const minutes = screen && Math.floor((screen.now - epochMs) / 60_000);
    if (minutes === undefined || minutes < 0 || minutes >= 60) return timeText(epochMs, screen);
    return minutes === 0 ? 'just now' : `${minutes} min ago`;
  };
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** e.g. `today 16:01`, `yesterday 16:01`, `24 Nov 16:01`, `24 Nov 2025`, on this machine's clock. */
function shortTime(epochMs: number, now: number): string {
  const at = new Date(epochMs);
  const time = localTime(epochMs).slice(0, 5);
  const near = [-1, 0, 1].find((days) => localDay(epochMs) === localDay(dayFrom(now, days)));
  if (near !== undefined) return `${near === 0 ? 'today' : near < 0 ? 'yesterday' : 'tomorrow'} ${time}`;
  const day = `${at.getDate()} ${months[at.getMonth()]}`;
  return at.getFullYear() === new Date(now).getFullYear() ? `${day} ${time}` : `${day} ${at.getFullYear()}`;
}

/** Days have 23 or 25 hours where the clock is set forward or back. */
function dayFrom(now: number, days: number): number {
  const at = new Date(now);
  return at.setDate(at.getDate() + days);
}
