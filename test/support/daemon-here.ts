import { runCli } from '../../src/cli/program.ts';
import { PipedIo, type RunOptions } from './command-io.ts';
import type { CliHome } from './run-cli.ts';
import { Serving, type StartOptions } from './serving.ts';

/** Runs `rankd serve` in this process, which is ten times as fast as starting a separate one. */
export class DaemonHere extends Serving {
  readonly #io: ServingIo;
  readonly #ended: Promise<number>;

  private constructor(io: ServingIo, greeting: string, ended: Promise<number>) {
    super(greeting);
    this.#io = io;
    this.#ended = ended;
  }

  /** Resolves once the daemon is listening; rejects with its output if it exits first. */
  static async start(
    home: CliHome,
    { args = [], env = {}, typedAs }: StartOptions & Pick<RunOptions, 'typedAs'> = {},
  ): Promise<DaemonHere> {
    const io = new ServingIo(home, { env, ...(typedAs && { typedAs }) });
    const ended = runCli(['serve', '--port', '0', '--json', ...args], io);
    const greeting = await Promise.race([io.greeting, ended]);
    if (typeof greeting === 'string') return new DaemonHere(io, greeting, ended);
    throw new Error(`rankd serve ended before it listened: ${io.err}`);
  }

  get log(): string {
    return this.#io.err;
  }

  get out(): string {
    return this.#io.out;
  }

  /** Resolves once the daemon reads lines from its console. */
  get console(): Promise<void> {
    return this.#io.isRead.promise;
  }

  type(line: string): void {
    this.#io.type(line);
  }

  /** Resolves with the exit code. */
  get ended(): Promise<number> {
    return this.#ended;
  }

  stop(signal: 'SIGTERM' | 'SIGINT' = 'SIGTERM'): Promise<number> {
    this.#io.stop(signal);
    return this.#ended;
  }

  /** Simulates SIGHUP. */
  reload(): void {
    this.#io.reload();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

class ServingIo extends PipedIo {
  readonly #greeting = Promise.withResolvers<string>();
  readonly #stop = Promise.withResolvers<string>();
  readonly greeting = this.#greeting.promise;
  override readonly stopSignal = this.#stop.promise;
  readonly stop = this.#stop.resolve;
  reload = (): void => undefined;

  override stdout = (text: string): void => {
    this.out += text;
    if (text.endsWith('\n')) this.#greeting.resolve(this.out);
  };

  override onReload = (listener: () => void): void => {
    this.reload = listener;
  };
}
