import type { Io } from '../../src/cli/io.ts';
import type { CliHome } from './run-cli.ts';
import { WatchedIo } from './watched-io.ts';

/** A terminal that is watched: what a person sees of a command that runs in this process, and what they type. */
export class TerminalIo extends WatchedIo implements Io {
  readonly isTerminal = true;
  readonly stdoutIsTerminal = true;
  readonly showsProgress = true;
  readonly env: Record<string, string>;
  readonly cwd: string;
  readonly home: string;
  readonly #stop = Promise.withResolvers<string>();
  readonly #answers: string[];

  /** `answers`: what is typed at each question, in turn. */
  constructor({ folder, dataDir, cwd }: CliHome, answers: string[] = []) {
    super();
    this.env = { RANKD_DATA_DIR: dataDir };
    this.cwd = cwd;
    this.home = folder;
    this.#answers = answers;
  }

  ask = async (question: string): Promise<string> => {
    this.talk += question;
    const answer = this.#answers.shift();
    if (answer === undefined) throw new Error(`nobody expected to be asked: ${question}`);
    return answer;
  };

  askHidden = (question: string): Promise<string> => this.ask(question);

  readSecret = (question: string): Promise<string> => this.ask(question);

  readStdin = async () => '';

  get stopSignal(): Promise<string> {
    return this.#stop.promise;
  }

  /** As Ctrl-C does. */
  stop(): void {
    this.#stop.resolve('SIGINT');
  }
}
