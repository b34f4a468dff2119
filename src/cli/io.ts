import type { System, SystemUser } from '../base/system.ts';

/** A command's environment: its input, its outputs, and the user who runs it. The real one is in `process-io.ts`. */
export interface Io {
  /** Writes results. */
  stdout(text: string): void;
  /** Resolves once the output buffer has room, so that streaming results needs little memory. */
  drained(): Promise<void>;
  /** Writes binary results, or results that must not be lost. Rejects if the output has been closed. */
  stdoutBytes(chunk: Uint8Array): Promise<void>;
  /** Writes messages other than results: progress, hints, errors. */
  stderr(text: string): void;
  /** Writes a log line, in order with `stderr`. */
  log(line: string): void;
  /** True while the buffer of unread log lines is full. */
  isLogFull(): boolean;
  /** True if someone can read the output and answer questions. */
  isTerminal: boolean;
  /** True if `stderr` is a terminal, where a line can be overwritten. */
  showsProgress: boolean;
  /** True if results go to a terminal. */
  stdoutIsTerminal: boolean;
  /** The current size of the terminal that shows the results; undefined if unknown. */
  readonly screenSize: { columns: number; rows: number } | undefined;
  /** Asks a question on the terminal. Resolves with the typed line. */
  ask(question: string): Promise<string>;
  /** Asks for a secret without showing the typed text. */
  askHidden(question: string): Promise<string>;
  /** Printed if the user ends a prompt with Ctrl-C, or if the input ends, e.g. "Nothing was written." */
  farewell?: string | undefined;
  /**
   * Calls `listener` with each line of standard input, without the line break, until the returned object is disposed.
   */
  readLines(listener: (line: string) => void): Promise<Disposable>;
  /** Reads all of standard input. */
  readStdin(): Promise<string>;
  /** Reads all of standard input as bytes. */
  stdinBytes(): AsyncIterable<Uint8Array>;
  stdinIsTerminal: boolean;
  /** Reads a secret from standard input. On a terminal, asks `question` and hides the typed text. */
  readSecret(question: string): Promise<string>;
  system: System;
  env: Record<string, string | undefined>;
  /** Throws `not_found` if the folder was removed. */
  readonly cwd: string;
  /** The user who runs this process; `undefined` on Windows. */
  user: SystemUser | undefined;
  nodeVersion: string;
  /** The Node.js options on the command line. */
  nodeOptions: readonly string[];
  pid: number;
  /** The absolute paths of Node.js and of rankd's script. */
  command: [node: string, rankd: string];
  /** The command that starts rankd here, e.g. `npx rankd`. */
  readonly typedAs: string;
  /** The folder with rankd's own files. */
  packageDir: string;
  home: string;
  /** A machine-wide service's default data directory, if this system has one. */
  serviceDataDir: string | undefined;
  /** The actor recorded in the audit log: `cli:<user>@<host>`. */
  operator: string;
  /** Resolves with the first stop signal's name. */
  stopSignal: Promise<string>;
  /** Calls `listener` at each signal that asks for a reload of the configuration. */
  onReload(listener: () => void): void;
  /** Resolves once the program that reads the results has closed the pipe. */
  readerGone: Promise<void>;
}

/** The options that every command takes, anywhere on the line. */
export interface GlobalOptions {
  config?: string;
  dataDir?: string;
  json?: boolean;
  quiet?: boolean;
  verbose?: boolean;
  yes?: boolean;
}
