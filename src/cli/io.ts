import type { System, SystemUser } from '../base/system.ts';

/** The world as a command sees it: what it reads, where it writes, who runs it. `main.ts` makes the real one. */
export interface Io {
  /** Writes results. */
  stdout(text: string): void;
  /** Resolves once there is room for more results: a long stream of them stays flat in memory. */
  drained(): Promise<void>;
  /** Writes a piece of a result that is not text, or that must not be lost. Rejects if nobody takes it any more. */
  stdoutBytes(chunk: Uint8Array): Promise<void>;
  /** Writes what is said beside results: progress, hints, errors. */
  stderr(text: string): void;
  /** Writes a line of a daemon's log, in order with what `stderr` writes. */
  log(line: string): void;
  /** True while so much of the log waits to be read that no more may be kept. */
  isLogFull(): boolean;
  /** True if a person sees the output and can answer. */
  isTerminal: boolean;
  /** True if a person sees on a screen what `stderr` writes, so that a line may be overwritten. */
  showsProgress: boolean;
  /** True if results go to a screen. */
  stdoutIsTerminal: boolean;
  /** The size of the screen that results go to; undefined if they go to none, or it does not tell. It changes with the window. */
  readonly screenSize: { columns: number; rows: number } | undefined;
  /** Asks a question on the terminal and resolves with the line typed. */
  ask(question: string): Promise<string>;
  /** Asks for a secret: what is typed is not shown. */
  askHidden(question: string): Promise<string>;
  /** Printed if the person leaves at a question with Ctrl-C, such as "Nothing was written." */
  farewell?: string | undefined;
  /** Reads all of standard input. */
  readStdin(): Promise<string>;
  /** The same, byte by byte. */
  stdinBytes(): AsyncIterable<Uint8Array>;
  /** True if a person types what is read. */
  stdinIsTerminal: boolean;
  /** Reads a secret from standard input. On a terminal, it asks `question` and does not show what is typed. */
  readSecret(question: string): Promise<string>;
  /** The system that it runs on. */
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
  /** How this command line was started: Node.js and rankd, as absolute paths. */
  command: [node: string, rankd: string];
  /** The command for `rankd` here, e.g. `npx rankd`. */
  readonly typedAs: string;
  /** Where rankd's own files are. */
  packageDir: string;
  home: string;
  /** Where a service of this machine has its data, if it can have one. */
  serviceDataDir: string | undefined;
  /** The actor in the audit: `cli:<user>@<host>`. */
  operator: string;
  /** Resolves with the name of the first signal that asks to stop. */
  stopSignal: Promise<string>;
  /** Calls `listener` at each signal that asks for a reload of the configuration. */
  onReload(listener: () => void): void;
  /** Resolves once nobody reads the results any more. */
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
