import { RankdError } from '../base/errors.ts';
import { suggest } from '../base/text.ts';
import type { Io } from './io.ts';
import { ExitCode, formatError } from './output/errors.ts';

/** Resolves with the exit code; never rejects. */
export type RunLine = (line: string[], io: Io) => Promise<number>;

/**
 * A daemon's console, for hosts without a shell. It runs each line of standard input as a command in this process.
 * Commands print only to standard output, and the log goes to standard error, so the log never contains a printed
 * secret.
 */
export class Console implements AsyncDisposable {
  /** The environment of the commands and the daemon. Its hints show commands as the user types them on this console. */
  readonly io: Io;
  /** Resolves with the cause once the console begins to stop. */
  readonly stopped: Promise<string>;
  readonly #stop = Promise.withResolvers<string>();
  readonly #run: RunLine;
  #input: Disposable | undefined;
  /** Settles once all commands so far have ended. */
  #commands: Promise<unknown> = Promise.resolve();
  #question: PromiseWithResolvers<string> | undefined;
  #interrupt: (() => void) | undefined;
  #isStopping = false;

  constructor(base: Io, run: RunLine) {
    const print = (text: string) => {
      base.stderr(''); // the buffered log lines come first
      base.stdout(text);
    };
    const refuse = () => Promise.reject(notHidden());
    this.stopped = this.#stop.promise;
    this.#run = run;
    this.io = derived(base, {
      isTerminal: true,
      stdoutIsTerminal: true,
      stdinIsTerminal: true,
      screenSize: undefined,
      showsProgress: false,
      typedAs: '',
      env: base.stdoutIsTerminal ? base.env : { ...base.env, NO_COLOR: '1' },
      stdout: print,
      stderr: print,
      ask: (question) => this.#ask(question),
      askHidden: refuse,
      readSecret: refuse,
      readStdin: refuse,
    });
  }

  async open({ dataDir, configFile }: { dataDir: string; configFile: string | undefined }): Promise<void> {
    const env = {
      ...this.io.env,
      RANKD_DATA_DIR: dataDir,
      ...(configFile !== undefined && { RANKD_CONFIG: configFile }),
    };
    this.#input = await this.io.readLines((line) => this.#handleLine(line.trim(), env));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#input?.[Symbol.dispose]();
    this.#end('stop');
    this.#question?.reject(new ExitCode(130));
    await this.#commands;
  }

  #end(cause: string): void {
    this.#isStopping = true;
    this.#stop.resolve(cause);
  }

  #handleLine(line: string, env: Io['env']): void {
    if (this.#isStopping) return;
    if (line === 'stop') this.#end(line);
    else if (this.#question !== undefined) this.#question.resolve(line);
    else if (line === '') this.#interrupt?.();
    else if (meansStop(line)) this.io.stderr(formatError(unknownCommand(line), { asJson: false }));
    else this.#commands = this.#commands.then(() => this.#carryOut(wordsOf(line), env));
  }

  async #carryOut(words: string[], env: Io['env']): Promise<void> {
    if (this.#isStopping) return;
    const interrupted = Promise.withResolvers<string>();
    this.#interrupt = () => interrupted.resolve('SIGINT');
    const stopSignal = Promise.race([this.io.stopSignal, this.#stop.promise, interrupted.promise]);
    await this.#run(words, derived(this.io, { env, stopSignal }));
    this.#interrupt = undefined;
  }

  /**
   * Prints the question as a complete line, because hosting panels show only complete lines. The next line of input is
   * the answer.
   */
  async #ask(question: string): Promise<string> {
    this.io.stdout(`${question.trimEnd()}\n`);
    this.#question = Promise.withResolvers();
    try {
      return await this.#question.promise;
    } finally {
      this.#question = undefined;
    }
  }
}

/** Overrides some fields of `base`. Reads all others from `base` on each access. */
function derived(base: Io, changed: Partial<Io>): Io {
  return Object.create(base, Object.getOwnPropertyDescriptors(changed)) as Io;
}

/**
 * Splits a line into words, and treats quoted text as one word. Removes a leading `rankd` or `npx rankd`, so that users
 * can paste commands from the docs.
 */
function wordsOf(line: string): string[] {
  const words = line.match(/(?:"[^"]*"|'[^']*'|\S)+/g) ?? [];
  const plain = words.map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'));
  const start = plain[0] === 'npx' ? 1 : 0;
  return plain.slice(plain[start] === 'rankd' ? start + 1 : 0);
}

/** Recognizes `exit`, `quit` and typos, because commander can't suggest `stop`, which only the console knows. */
function meansStop(line: string): boolean {
  return suggest(line, ['stop', 'exit', 'quit']) !== undefined;
}

function unknownCommand(line: string): RankdError {
  return new RankdError('usage', `Unknown command '${line}'.`, { hint: 'stop' });
}

function notHidden(): RankdError {
  return new RankdError('usage', 'This console shows what you type, so no command reads a secret or a list from it.', {
    hint: 'put it into a file and name the file; the help of the command shows the option',
  });
}
