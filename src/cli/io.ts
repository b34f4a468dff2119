import type { System, SystemUser } from '../base/system.ts';

/** A command's environment: its input, its outputs, and the user who runs it. `process-io.ts` implements it. */
export interface Io {
  /** Writes results. */
  stdout(text: string): void;
  /** Resolves once the output buffer has room, so that streamed results need little memory. */
  drained(): Promise<void>;
  /** Writes binary results, or results that must not be lost. Rejects if the output has been closed. */
  stdoutBytes(chunk: Uint8Array): Promise<void>;
  /** Writes everything except results: progress, hints, errors. */
  stderr(text: string): void;
  /** Writes a log line, and preserves its order relative to `stderr`. */
  log(line: string): void;
  isLogFull(): boolean;
  /** True if a user can see the output and answer questions. */
  isTerminal: boolean;
  /** True if `stderr` is a terminal, where a line can be overwritten. */
  showsProgress: boolean;
  stdoutIsTerminal: boolean;
  /** The terminal's current size; undefined if unknown. */
  readonly screenSize: { columns: number; rows: number } | undefined;
  ask(question: string): Promise<string>;
  /** Does not echo the typed text. */
  askHidden(question: string): Promise<string>;
  /** Printed if the user presses Ctrl-C at a prompt, or if the input ends, e.g. "Nothing was written." */
  interruptMessage?: string | undefined;
  /**
   * Calls `listener` with each line of standard input, without its line break, until the returned object is disposed.
   */
  readLines(listener: (line: string) => void): Promise<Disposable>;
  readStdin(): Promise<string>;
  stdinBytes(): AsyncIterable<Uint8Array>;
  stdinIsTerminal: boolean;
  /** Reads a secret from standard input. On a terminal, asks `question`, and does not echo the typed text. */
  readSecret(question: string): Promise<string>;
  system: System;
  env: Record<string, string | undefined>;
  /** Throws `not_found` if the folder has been removed. */
  readonly cwd: string;
  /** `undefined` on Windows. */
  user: SystemUser | undefined;
  nodeVersion: string;
  /** The options given to Node.js itself, not to rankd. */
  nodeOptions: readonly string[];
  pid: number;
  /** The absolute paths of Node.js and of rankd's script. */
  command: [node: string, rankd: string];
  /** The command with which the user starts rankd, e.g. `npx rankd`; empty on a daemon's console. */
  readonly typedAs: string;
  packageDir: string;
  home: string;
  serviceDataDir: string | undefined;
  /** The actor recorded in the audit log: `cli:<user>@<host>`. */
  operator: string;
  /** Resolves with the name of the first stop signal. */
  stopSignal: Promise<string>;
  onReload(listener: () => void): void;
  /** Resolves once the program that reads the results has closed the pipe. */
  readerGone: Promise<void>;
}

export interface GlobalOptions {
  config?: string;
  dataDir?: string;
  json?: boolean;
  quiet?: boolean;
  verbose?: boolean;
  yes?: boolean;
}
