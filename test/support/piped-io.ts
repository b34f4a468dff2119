import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Io } from '../../src/cli/io.ts';
import type { CliHome, RunOptions } from './run-cli.ts';

/** What a command in this process has of the world off a terminal. */
export class PipedIo implements Io {
  /** Results. */
  out = '';
  /** Talk. */
  talk = '';
  readonly isTerminal = false;
  readonly stdoutIsTerminal = false;
  readonly showsProgress = false;
  readonly env: Record<string, string>;
  readonly cwd: string;
  readonly nodeVersion = process.versions.node;
  readonly pid = process.pid;
  readonly packageDir = fileURLToPath(new URL('../..', import.meta.url));
  readonly command: [string, string] = [process.execPath, join(this.packageDir, 'bin', 'rankd.js')];
  readonly home: string;
  readonly operator = 'cli:tester@test';
  readonly readerGone = new Promise<void>(() => undefined);
  readonly stopSignal = new Promise<string>(() => undefined);
  readonly #input: string;

  constructor(home: CliHome, { env = {}, cwd = home.cwd, dataDir = home.dataDir, input = '' }: RunOptions) {
    this.env = { PATH: process.env['PATH'] ?? '', HOME: home.folder, RANKD_DATA_DIR: dataDir, ...env };
    this.cwd = cwd;
    this.home = this.env['HOME'] ?? home.folder;
    this.#input = input;
  }

  stdout = (text: string) => {
    this.out += text;
  };

  stdoutBytes = () => Promise.reject(new Error('only text is kept here'));

  stderr = (text: string) => {
    this.talk += text;
  };

  log = this.stderr;

  drained = async () => undefined;

  ask = (question: string): Promise<string> => Promise.reject(new Error(`nobody can be asked: ${question}`));

  askHidden = (question: string): Promise<string> => this.ask(question);

  readStdin = async () => this.#input;

  onReload = () => undefined;
}
