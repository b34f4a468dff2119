import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { binary, type CliHome } from './run-cli.ts';
import { Serving, type StartOptions } from './serving.ts';

/** Makes Linux kill the daemon when the test process ends, even if that process is killed; see setpriv(1). */
const diesWithParent = process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL'] : [];

/** Runs `rankd serve` of the built binary in a separate process. */
export class DaemonProcess extends Serving {
  readonly process: ChildProcessByStdio<null, Readable, Readable>;
  log = '';

  private constructor(child: ChildProcessByStdio<null, Readable, Readable>, greeting: string, stderr: string) {
    super(greeting);
    this.process = child;
    this.log = stderr;
    child.stderr.on('data', (chunk) => {
      this.log += chunk;
    });
  }

  /** Resolves once the daemon is listening; rejects with its output if it exits first. */
  static async start(home: CliHome, { args = [], env = {} }: StartOptions = {}) {
    const command = [...diesWithParent, process.execPath, binary, 'serve', '--port', '0', '--json', ...args];
    const [file = '', ...rest] = command;
    const child = spawn(file, rest, {
      cwd: home.cwd,
      env: { ...home.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let stderr = '';
    const collect = (chunk: Buffer) => {
      stderr += chunk;
    };
    child.stderr.on('data', collect);
    for await (const line of createInterface({ input: child.stdout })) {
      child.stderr.off('data', collect);
      return new DaemonProcess(child, line, stderr);
    }
    throw new Error(`rankd serve ended before it listened: ${stderr}`);
  }

  /** Sends `signal`. Resolves with the exit code, or `null` if a signal killed the process. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return this.process.exitCode;
    const exited = once(this.process, 'exit');
    this.process.kill(signal);
    return (await exited)[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGKILL');
  }
}
