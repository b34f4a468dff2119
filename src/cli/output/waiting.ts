import { systemClock } from '../../base/clock.ts';
import type { Io } from '../io.ts';
import type { TerminalLine } from './terminal-line.ts';

const everyMs = 1_000;

/** Runs `work`. If it takes more than a second, the line says what is being done and for how long. */
export async function whileWaiting<T>(line: TerminalLine, what: string, work: () => Promise<T>): Promise<T> {
  const done = new AbortController();
  const startedAt = systemClock.monotonic();
  const tell = async () => {
    for (;;) {
      await systemClock.sleep(everyMs, done.signal);
      const seconds = Math.round((systemClock.monotonic() - startedAt) / 1000);
      if (!line.isHeld) line.show(`${what}, ${seconds} s`);
    }
  };
  tell().catch(() => undefined); // ends when the work does
  try {
    return await work();
  } finally {
    done.abort();
    line.clear();
  }
}

/** The same for results that are printed as they come. On a screen, the results themselves show that something happens. */
export function whileStreaming<T>(
  { io, line }: { io: Pick<Io, 'stdoutIsTerminal'>; line: TerminalLine },
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  return io.stdoutIsTerminal ? work() : whileWaiting(line, what, work);
}

/** The same for work that blocks this process, so that no timer can fire: the line is shown before it begins. */
export async function whileWorking<T>(line: TerminalLine, what: string, work: () => T | Promise<T>): Promise<T> {
  line.show(`${what} …`);
  try {
    return await work();
  } finally {
    line.clear();
  }
}
