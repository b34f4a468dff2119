import { type LevelWithSilent, type Logger, pino } from 'pino';
import { isRankdError } from './errors.ts';
import type { Paints } from './paint.ts';
import { escapeControls } from './text.ts';
import { localTime } from './time.ts';

export type { Logger } from 'pino';

export type LogLevel = LevelWithSilent;

interface LogOptions {
  level: LogLevel;
  /** False for JSON lines. */
  readable: Paints | false;
  write: (line: string) => void;
  /** True while too much output is buffered. New lines are then dropped and counted. */
  isFull?: () => boolean;
  /** Receives every line, as JSON, before it is written, even if it is then dropped. */
  note?: (line: string) => void;
}

/** Creates a log of one line per event. Redacts fields with the name of a secret, at the top two levels. */
export function createLog({ level, readable, write, isFull, note }: LogOptions): Logger {
  let dropped = 0;
  const log: Logger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: (error) => (log.isLevelEnabled('debug') ? withStack(error) : withoutStack(error)) },
      redact: {
        paths: ['authorization', '*.authorization', 'secret', '*.secret', 'apiKey', '*.apiKey'],
        censor: '[redacted]',
      },
    },
    {
      write(line: string) {
        note?.(line);
        if (isFull?.()) {
          dropped += 1;
          return;
        }
        if (dropped > 0) reportDropped();
        write(readable ? readableLine(line, readable) : `${escapeControls(line.trimEnd())}\n`);
      },
    },
  );
  const reportDropped = () => {
    const fields = { dropped };
    dropped = 0;
    log.warn(fields, 'log lines were dropped because the reader of the log had fallen behind');
  };
  return log;
}

const withStack = pino.stdSerializers.err;

/** Only bugs in rankd and debug logs need a stack. */
function withoutStack(error: Error): object {
  if (!isRankdError(error) || error.code === 'internal') return withStack(error);
  const { code, message, hint, connection } = error;
  return { code, message, hint, ...(connection && { cause: connection }) };
}

/** Formats a line: the time, level and message, then the hint and the other fields, then any stack on its own lines. */
function readableLine(json: string, paint: Paints): string {
  const { time, level, msg, err, problem: _, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const request = msg === 'request' ? requestText(fields) : undefined;
  const shown =
    request === undefined ? Object.entries(fields) : Object.entries(fields).filter(([name]) => !inText.includes(name));
  const pairs = shown.map(
    ([name, value]) => `${name}=${typeof value === 'string' ? oneLine(value) : JSON.stringify(value)}`,
  );
  const { stack: frames, message, hint } = (err ?? {}) as { stack?: string; message?: string; hint?: string };
  const stack = frames === undefined ? [] : frames.split('\n');
  const why = frames === undefined && message !== undefined ? `: ${message}` : '';
  const fix = frames === undefined && hint !== undefined ? `  try: ${hint}` : '';
  const levelText = paint.state(String(level)) + ' '.repeat(5 - String(level).length);
  const what = `${localTime(Date.parse(String(time)))} ${levelText} ${escapeControls(`${request ?? msg}${why}`)}`;
  const secondary = [fix.trimStart(), pairs.join(' ')].filter((part) => part !== '').map(escapeControls);
  const lines = [
    [what, ...secondary.map(paint.dimmed)].join('  '),
    ...stack.map((frame) => `  ${escapeControls(frame)}`),
  ];
  return `${lines.join('\n')}\n`;
}

const inText = ['method', 'path', 'status', 'ms', 'keyName', 'keyId', 'rankeeId', 'change'];

/** e.g. `POST /v1/ranker 200 14 ms my-game: 1001 Trainee → Officer` */
function requestText({ method, path, status, ms, keyName, rankeeId, change }: Record<string, unknown>): string {
  const subject =
    keyName === undefined ? '' : ` ${keyName}${rankeeId === undefined ? '' : `: ${rankeeId} ${change ?? ''}`}`;
  return `${method} ${path} ${status} ${ms} ms${subject}`.trimEnd();
}

/** Quotes text from callers, so that it can't pass for another field. */
function oneLine(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : JSON.stringify(text);
}
