import type { Io } from '../../src/cli/io.ts';
import { WatchedIo } from './watched-io.ts';

export interface RunOptions {
  /** Besides HOME, PATH and RANKD_DATA_DIR; nothing else of the tests' own environment is passed on. */
  env?: Record<string, string>;
  cwd?: string;
  /** Standard input; empty unless given. */
  input?: string;
  dataDir?: string;
}

/** The folders that a run of `rankd` finds. */
export interface CliFolders {
  folder: string;
  dataDir: string;
  cwd: string;
}

/** What a command in this process has of the world off a terminal. */
export class PipedIo extends WatchedIo implements Io {
  readonly isTerminal = false;
  readonly stdoutIsTerminal = false;
  readonly showsProgress = false;
  readonly env: Record<string, string>;
  readonly cwd: string;
  readonly home: string;
  readonly stopSignal = new Promise<string>(() => undefined);
  readonly #input: string;

  constructor(home: CliFolders, { env = {}, cwd = home.cwd, dataDir = home.dataDir, input = '' }: RunOptions) {
    super();
    this.env = { PATH: process.env['PATH'] ?? '', HOME: home.folder, RANKD_DATA_DIR: dataDir, ...env };
    this.cwd = cwd;
    this.home = this.env['HOME'] ?? home.folder;
    this.#input = input;
  }

  ask = (question: string): Promise<string> => Promise.reject(new Error(`nobody can be asked: ${question}`));

  askHidden = (question: string): Promise<string> => this.ask(question);

  readStdin = async () => this.#input;

  readSecret = this.readStdin;
}
