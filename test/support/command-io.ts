import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type System, type SystemUser, thisSystem } from '../../src/base/system.ts';
import type { Io } from '../../src/cli/io.ts';

export interface RunOptions {
  /** Additional variables. A command inherits only PATH from the test process. */
  env?: Record<string, string>;
  cwd?: string;
  /** Standard input; empty by default. */
  input?: string;
  dataDir?: string;
  /** For a command in this process: the operating system whose commands and paths it prints. */
  system?: System;
  /** For a command in this process: the Node.js version to simulate. */
  nodeVersion?: string;
  /** For a command in this process: the command name that the user types; `rankd` by default. */
  typedAs?: string;
  /** For a command in this process: true to simulate Ctrl-C as soon as the command starts. */
  isInterrupted?: boolean;
  /** For a separate process: the script that Node.js runs; by default, this clone's `rankd`. */
  script?: string;
}

export interface CliFolders {
  folder: string;
  dataDir: string;
  cwd: string;
}

class WatchedIo {
  readonly env: Record<string, string>;
  readonly cwd: string;
  readonly home: string;
  readonly serviceDataDir: string;
  /** Standard output: the results. */
  out = '';
  /** Standard error: messages and the log. */
  err = '';
  readonly system: System;
  readonly nodeVersion: string;
  readonly nodeOptions: readonly string[] = [];
  readonly user = thisUser();
  readonly pid = process.pid;
  readonly packageDir = packageDir;
  readonly command: [string, string] = [process.execPath, join(packageDir, 'bin', 'rankd.js')];
  readonly typedAs: string;
  readonly operator = 'cli:tester@test';
  readonly readerGone = new Promise<void>(() => undefined);

  constructor(
    env: Record<string, string>,
    { folder, cwd }: Pick<CliFolders, 'folder' | 'cwd'>,
    {
      system = thisSystem,
      nodeVersion = process.versions.node,
      typedAs = 'rankd',
    }: Pick<RunOptions, 'system' | 'nodeVersion' | 'typedAs'> = {},
  ) {
    this.system = system;
    this.nodeVersion = nodeVersion;
    this.typedAs = typedAs;
    this.env = env;
    this.cwd = cwd;
    this.home = env['HOME'] ?? folder;
    this.serviceDataDir = join(folder, 'var-lib-rankd');
  }

  stdout = (text: string) => {
    this.out += text;
  };

  stdoutBytes = async (chunk: Uint8Array) => this.stdout(Buffer.from(chunk).toString());

  stderr = (text: string) => {
    this.err += text;
  };

  log = this.stderr;
  isLogFull = () => false;

  drained = async () => undefined;

  /** Types a line on the console. Throws until the command starts reading lines. */
  type = (_line: string): void => {
    throw new Error('the command does not read lines yet');
  };

  /** Resolves when the command starts reading lines. */
  readonly isRead = Promise.withResolvers<void>();

  readLines = async (listener: (line: string) => void): Promise<Disposable> => {
    this.type = listener;
    this.isRead.resolve();
    return { [Symbol.dispose]: () => undefined };
  };

  onReload = (_listener: () => void): void => undefined;
}

/** The environment of a command in this process, without a terminal. */
export class PipedIo extends WatchedIo implements Io {
  readonly isTerminal = false;
  readonly screenSize = undefined;
  readonly stdoutIsTerminal = false;
  readonly showsProgress = false;
  readonly stopSignal: Promise<string>;
  readonly #input: string;

  constructor(
    home: CliFolders,
    { env = {}, cwd = home.cwd, dataDir = home.dataDir, input = '', isInterrupted = false, ...machine }: RunOptions,
  ) {
    const basics = { PATH: process.env['PATH'] ?? '', HOME: home.folder, RANKD_DATA_DIR: dataDir };
    super({ ...basics, ...env }, { ...home, cwd }, machine);
    this.#input = input;
    this.stopSignal = isInterrupted ? Promise.resolve('SIGINT') : new Promise(() => undefined);
  }

  ask = (question: string): Promise<string> =>
    Promise.reject(new Error(`there is no terminal for the question: ${question}`));

  askHidden = (question: string): Promise<string> => this.ask(question);

  readStdin = async () => this.#input;

  async *stdinBytes(): AsyncIterable<Uint8Array> {
    yield Buffer.from(this.#input);
  }

  stdinIsTerminal = false;

  readSecret = this.readStdin;
}

/** A simulated terminal for a command in this process. It records the output and answers the questions. */
export class TerminalIo extends WatchedIo implements Io {
  readonly isTerminal = true;
  screenSize: { columns: number; rows: number } | undefined = { columns: 100, rows: 30 };
  readonly stdoutIsTerminal = true;
  readonly showsProgress = true;
  readonly #stop = Promise.withResolvers<string>();
  readonly #answers: string[];

  /** `answers`: one line to type for each question. */
  constructor(home: CliFolders, answers: string[] = [], system: System = thisSystem) {
    super({ RANKD_DATA_DIR: home.dataDir }, home, { system });
    this.#answers = answers;
  }

  ask = async (question: string): Promise<string> => {
    this.err += question;
    const answer = this.#answers.shift();
    if (answer === undefined) throw new Error(`unexpected question: ${question}`);
    return answer;
  };

  askHidden = (question: string): Promise<string> => this.ask(question);

  readSecret = (question: string): Promise<string> => this.ask(question);

  readStdin = async () => '';

  async *stdinBytes(): AsyncIterable<Uint8Array> {}

  stdinIsTerminal = true;

  get stopSignal(): Promise<string> {
    return this.#stop.promise;
  }

  stop(): void {
    this.#stop.resolve('SIGINT');
  }
}

const packageDir = fileURLToPath(new URL('../..', import.meta.url));

/** Returns the user that runs the tests, or `undefined` on Windows. */
export function thisUser(): SystemUser | undefined {
  const { geteuid, getegid } = process;
  return geteuid && getegid && { uid: geteuid(), gid: getegid() };
}
