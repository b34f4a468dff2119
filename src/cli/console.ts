import { RankdError } from '../base/errors.ts';
import { suggest } from '../base/text.ts';
import type { Io } from './io.ts';
import { ExitCode, formatError } from './output/errors.ts';

/** Runs one command line, without Node.js and rankd. Resolves with the exit code; never throws. */
export type RunLine = (line: string[], io: Io) => Promise<number>;

/**
 * The console of a daemon, for hosts without a shell: each line of standard input is a command, which runs in this
 * process. Commands print to standard output only. The log goes to standard error, so no secret that a command prints
 * gets into it.
 */
export class Console implements AsyncDisposable {
  /** The environment of the commands, and of the daemon, whose hints are lines to type here. */
  readonly io: Io;
  /** Resolves with `stop` once that line is typed. */
  readonly stopped: Promise<string>;
  readonly #stop = Promise.withResolvers<string>();
  readonly #run: RunLine;
  #input: Disposable | undefined;
  /** Ends after the last command. */
  #commands: Promise<unknown> = Promise.resolve();
  #question: PromiseWithResolvers<string> | undefined;
  #interrupt: (() => void) | undefined;
  #isStopping = false;

  constructor(base: Io, run: RunLine) {
    const print = (text: string) => {
      base.stderr(''); // earlier log lines come first
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

  /** Takes lines from now on. Commands use the data directory and the configuration file that the daemon uses. */
  async open({ dataDir, configFile }: { dataDir: string; configFile: string | undefined }): Promise<void> {
    const env = {
      ...this.io.env,
      RANKD_DATA_DIR: dataDir,
      ...(configFile !== undefined && { RANKD_CONFIG: configFile }),
    };
    this.#input = await this.io.readLines((line) => this.#take(line.trim(), env));
  }

  /** Waits for the running command. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#input?.[Symbol.dispose]();
    this.#end('stop');
    this.#question?.reject(new ExitCode(130));
    await this.#commands;
  }

  /** No command begins from now on. */
  #end(cause: string): void {
    this.#isStopping = true;
    this.#stop.resolve(cause);
  }

  #take(line: string, env: Io['env']): void {
    if (this.#isStopping) return;
    if (line === 'stop') this.#end(line);
    else if (this.#question !== undefined) this.#question.resolve(line);
    else if (line === '') this.#interrupt?.();
    else if (meansStop(line)) this.io.stderr(formatError(notStop(line), { asJson: false }));
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

  /** On a separate line, because panels show whole lines. The next line typed is the answer. */
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

/** Reads the unchanged fields from `base` when they are requested. */
function derived(base: Io, changed: Partial<Io>): Io {
  return Object.create(base, Object.getOwnPropertyDescriptors(changed)) as Io;
}

/** The words of a line; quoted text is one word. A leading `rankd`, as in the docs, is left out. */
function wordsOf(line: string): string[] {
  const words = line.match(/(?:"[^"]*"|'[^']*'|\S)+/g) ?? [];
  const plain = words.map((word) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'));
  const start = plain[0] === 'npx' ? 1 : 0;
  return plain.slice(plain[start] === 'rankd' ? start + 1 : 0);
}

/** True for a typo of `stop`, which the program does not suggest because it is none of its commands. */
function meansStop(line: string): boolean {
  return suggest(line, ['stop', 'exit', 'quit']) !== undefined;
}

function notStop(line: string): RankdError {
  return new RankdError('usage', `Unknown command '${line}'.`, { hint: 'stop' });
}

function notHidden(): RankdError {
  return new RankdError('usage', 'This console shows what you type, so no command reads a secret or a list from it.', {
    hint: 'put it into a file and name the file; the help of the command shows the option',
  });
}
