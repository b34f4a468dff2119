import { type Logger, pino } from 'pino';

export type { Logger } from 'pino';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

interface LogOptions {
  level: LogLevel;
  /** Readable lines for a terminal instead of JSON. */
  readable: boolean;
  write: (line: string) => void;
}

/** One line an event. Header and key fields are redacted wherever they turn up, so that no call site has to remember it. */
export function createLog({ level, readable, write }: LogOptions): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: ['authorization', '*.authorization', 'secret', '*.secret', 'apiKey', '*.apiKey'],
        censor: '[redacted]',
      },
    },
    { write: (line: string) => write(readable ? readableLine(line) : line) },
  );
}

/** e.g. `14:02:11 warn  platform does not answer  code=platform_unavailable` */
function readableLine(json: string): string {
  const { time, level, msg, err, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const pairs = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? oneLine(value) : JSON.stringify(value)}`,
  );
  const stack = err === undefined ? '' : `\n  ${String((err as { stack?: string }).stack).replaceAll('\n', '\n  ')}`;
  return `${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${msg}${pairs.length > 0 ? `  ${pairs.join(' ')}` : ''}${stack}\n`;
}

/** Callers' text can't start a line of its own or send escape sequences to the terminal. */
function oneLine(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : JSON.stringify(text);
}
