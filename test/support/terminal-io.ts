import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Io } from '../../src/cli/io.ts';
import type { CliHome } from './run-cli.ts';

/** A terminal that is watched: what a person sees of a command that runs in this process, and what they type. */
export class TerminalIo implements Io {
  /** Results. */
  out = '';
  /** Talk. */
  talk = '';
  readonly isTerminal = true;
  readonly stdoutIsTerminal = true;
  readonly showsProgress = true;
  readonly env: Record<string, string>;
  readonly cwd: string;
  readonly nodeVersion = process.versions.node;
  readonly pid = process.pid;
  readonly packageDir = fileURLToPath(new URL('../..', import.meta.url));
  readonly command: [string, string] = [process.execPath, join(this.packageDir, 'bin', 'rankd.js')];
  readonly home: string;
  readonly operator = 'cli:tester@test';
  readonly readerGone = new Promise<void>(() => undefined);
  readonly #stop = Promise.withResolvers<string>();
  readonly #answers: string[];

  /** `answers`: what is typed at each question, in turn. */
  constructor({ folder, dataDir, cwd }: CliHome, answers: string[] = []) {
    this.env = { RANKD_DATA_DIR: dataDir };
    this.cwd = cwd;
    this.home = folder;
    this.#answers = answers;
  }

  stdout = (text: string) => {
    this.out += text;
  };

  stdoutBytes = () => Promise.reject(new Error('nothing but text is printed on a terminal'));

  stderr = (text: string) => {
    this.talk += text;
  };

  log = this.stderr;

  drained = async () => undefined;

  ask = async (question: string): Promise<string> => {
    this.talk += question;
    const answer = this.#answers.shift();
    if (answer === undefined) throw new Error(`nobody expected to be asked: ${question}`);
    return answer;
  };

  askHidden = (question: string): Promise<string> => this.ask(question);

  readStdin = async () => '';

  onReload = () => undefined;

  get stopSignal(): Promise<string> {
    return this.#stop.promise;
  }

  /** As Ctrl-C does. */
  stop(): void {
    this.#stop.resolve('SIGINT');
  }
}
