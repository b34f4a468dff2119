import type { System, SystemUser } from '../base/system.ts';

/** The environment of a command: its input, its outputs, and the user who runs it. `main.ts` makes the real one. */
export interface Io {
  /** Writes results. */
  stdout(text: string): void;
  /** Resolves once there is room for more results, so that a long stream of them needs little memory. */
  drained(): Promise<void>;
  /** Writes a piece of a result that is not text, or that must not be lost. Rejects if the output is closed. */
  stdoutBytes(chunk: Uint8Array): Promise<void>;
  /** Writes messages, separate from the results: progress, hints, errors. */
  stderr(text: string): void;
  /** Writes a line of a daemon's log, in order with what `stderr` writes. */
  log(line: string): void;
  /** True while so much of the log is waiting to be read that no more can be buffered. */
  isLogFull(): boolean;
  /** True if a person sees the output and can answer. */
  isTerminal: boolean;
  /** True if a person sees on a screen what `stderr` writes, so that a line may be overwritten. */
  showsProgress: boolean;
  /** True if results go to a screen. */
  stdoutIsTerminal: boolean;
  /**
   * The size of the screen that shows the results; undefined if there is no screen or its size is unknown. It changes
   * with the window.
   */
  readonly screenSize: { columns: number; rows: number } | undefined;
  /** Asks a question on the terminal and resolves with the line typed. */
  ask(question: string): Promise<string>;
  /** Asks for a secret without showing the typed text. */
  askHidden(question: string): Promise<string>;
  /** Printed if the person presses Ctrl-C at a question, such as "Nothing was written." */
  farewell?: string | undefined;
  /** Calls `listener` with each line of standard input, without its end, until the result is disposed. */
  readLines(listener: (line: string) => void): Promise<Disposable>;
  /** Reads all of standard input. */
  readStdin(): Promise<string>;
  /** Reads all of standard input as bytes. */
  stdinBytes(): AsyncIterable<Uint8Array>;
  /** True if standard input is a terminal. */
  stdinIsTerminal: boolean;
  /** Reads a secret from standard input. On a terminal, it asks `question` and does not show what is typed. */
  readSecret(question: string): Promise<string>;
  /** The operating system. */
  system: System;
  env: Record<string, string | undefined>;
  /** Throws `not_found` if the folder was removed. */
  readonly cwd: string;
  /** The user who runs this process; `undefined` on Windows. */
  user: SystemUser | undefined;
  nodeVersion: string;
  /** The options of Node.js on the command line. */
  nodeOptions: readonly string[];
  pid: number;
  /** The start of this command line: Node.js and rankd, as absolute paths. */
  command: [node: string, rankd: string];
  /** The command for `rankd` here, e.g. `npx rankd`. */
  readonly typedAs: string;
  /** The folder with rankd's own files. */
  packageDir: string;
  home: string;
  /** The data directory that a service on this machine would use, if it can have one. */
  serviceDataDir: string | undefined;
  /** The actor in the audit: `cli:<user>@<host>`. */
  operator: string;
  /** Resolves with the name of the first signal that asks to stop. */
  stopSignal: Promise<string>;
  /** Calls `listener` at each signal that asks for a reload of the configuration. */
  onReload(listener: () => void): void;
  /** Resolves once the reader of the results is gone. */
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
