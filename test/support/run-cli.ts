import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { runCli as runProgram } from '../../src/cli/program.ts';
import { PipedIo, type RunOptions } from './command-io.ts';
import { TempDir } from './temp-dir.ts';

/** rankd under its installed name, as on the user's PATH. */
export const binary = fileURLToPath(new URL('rankd', import.meta.url));

/** The compile cache that the built rankd uses in most tests. */
export const compileCache = fileURLToPath(new URL('../../node_modules/.cache/rankd-tests', import.meta.url));

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
  /** Parses the output as one JSON document: stdout, or stderr if stdout is empty. */
  json<T = Record<string, unknown>>(): T;
}

/** Runs the built `rankd` in a temporary home, without a terminal. */
export async function runCli(args: string[], options: RunOptions = {}): Promise<CliResult> {
  using home = new CliHome();
  return await home.run(args, options);
}

/** A temporary home folder for any number of `rankd` commands. Disposal removes it. */
export class CliHome {
  readonly #dir: TempDir;
  readonly folder: string;
  readonly dataDir: string;
  readonly cwd: string;

  constructor(dir = new TempDir()) {
    this.#dir = dir;
    this.folder = dir.path;
    this.dataDir = join(dir.path, 'data');
    this.cwd = join(dir.path, 'work');
    mkdirSync(this.cwd);
  }

  path(name: string): string {
    return join(this.cwd, name);
  }

  /** Returns the environment for a process in this home. It inherits only PATH from the test process. */
  get env(): Record<string, string | undefined> {
    return {
      PATH: process.env['PATH'],
      HOME: this.folder,
      RANKD_DATA_DIR: this.dataDir,
      NODE_COMPILE_CACHE: compileCache,
    };
  }

  /** Starts a command, which the test has to stop or wait for. */
  start(
    args: string[],
    { env = {}, cwd = this.cwd, dataDir = this.dataDir, script = binary }: Omit<RunOptions, 'input'> = {},
  ): ChildProcessWithoutNullStreams {
    return this.#spawn([process.execPath, script, ...args], { env, cwd, dataDir });
  }

  async run(args: string[], { input = '', ...options }: RunOptions = {}): Promise<CliResult> {
    return await resultOf(this.start(args, options), input);
  }

  /** Runs a bash script in the same environment and working directory as the commands. */
  async shell(script: string, { env = {} }: Pick<RunOptions, 'env'> = {}): Promise<Omit<CliResult, 'json'>> {
    const child = this.#spawn(['bash', '-c', script], { env, cwd: this.cwd, dataDir: this.dataDir });
    const { json: _, ...result } = await resultOf(child, '');
    return result;
  }

  #spawn(
    [command, ...args]: [string, ...string[]],
    { env, cwd, dataDir }: { env: Record<string, string>; cwd: string; dataDir: string },
  ): ChildProcessWithoutNullStreams {
    return spawn(command, args, { cwd, env: { ...this.env, RANKD_DATA_DIR: dataDir, ...env } });
  }

  /** Runs a command in this process, which is faster than starting a separate one. */
  async here(args: string[], options: RunOptions = {}): Promise<CliResult> {
    const io = new PipedIo(this, options);
    const code = await runProgram(args, io);
    const { out, err } = io;
    return { code, stdout: out, stderr: err, json: () => JSON.parse(out || err) };
  }

  /** Runs a command with `--json` in this process, and returns the document. Throws if the command fails. */
  async json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
    const result = await this.here([...args, '--json']);
    if (result.code === 0) return result.json<T>();
    throw new Error(`rankd ${args.join(' ')} ended with ${result.code}: ${result.stderr}`);
  }

  /** Creates a key with place 1 on its whitelist, and returns its secret. */
  async createKey(name = 'game'): Promise<string> {
    const { secret } = await this.json<{ secret: string }>('key', 'create', name);
    await this.json('whitelist', 'add', '1', '--key', name);
    return secret;
  }

  [Symbol.dispose](): void {
    this.#dir[Symbol.dispose]();
  }
}

async function resultOf(child: ChildProcessWithoutNullStreams, input: string): Promise<CliResult> {
  child.stdin.on('error', () => undefined); // a command that reads no input may have exited already
  child.stdin.end(input);
  const code = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await code, stdout, stderr, json: () => JSON.parse(stdout || stderr) };
}
