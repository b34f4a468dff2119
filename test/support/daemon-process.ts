import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { rankBody } from './answers.ts';
import { binary, type CliHome } from './run-cli.ts';
import { type Answer, type Sent, send } from './send.ts';

/** On Linux the daemon ends with the tests, also where these are killed and dispose of nothing (PR_SET_PDEATHSIG, setpriv(1)). */
const mortally = process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL'] : [];

/** What `serve --json` prints, as far as tests need it. */
interface Greeting {
  url: string;
  metricsUrl: string | null;
}

/** `rankd serve` of the built binary, as a process of its own in a home of its own. */
export class DaemonProcess implements AsyncDisposable {
  /** e.g. `http://127.0.0.1:41503` */
  readonly url: string;
  /** `null` where metrics are off. */
  readonly metricsUrl: string | null;
  readonly process: ChildProcessByStdio<null, Readable, Readable>;
  /** Everything it logged so far. */
  log = '';

  private constructor(child: ChildProcessByStdio<null, Readable, Readable>, greeting: Greeting, stderr: string) {
    this.process = child;
    this.url = greeting.url;
    this.metricsUrl = greeting.metricsUrl;
    this.log = stderr;
    child.stderr.on('data', (chunk) => {
      this.log += chunk;
    });
  }

  /** Resolves when it listens; rejects with what it said where it ends instead. */
  static async start(home: CliHome, { args = [], env = {} }: { args?: string[]; env?: Record<string, string> } = {}) {
    const command = [...mortally, process.execPath, binary, 'serve', '--port', '0', '--json', ...args];
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
      return new DaemonProcess(child, JSON.parse(line), stderr);
    }
    throw new Error(`rankd serve ended before it listened: ${stderr}`);
  }

  post(path: string, sent?: Sent): Promise<Answer> {
    return send(this.url + path, { method: 'POST', ...sent });
  }

  /** Asks for a change of rank, as `rankBody(rest)` has it, from place 1. */
  rank(key: string, rest?: Record<string, unknown>, sent?: Sent): Promise<Answer> {
    return this.post('/v1/ranker?placeid=1', { key, body: rankBody(rest), ...sent });
  }

  /** Asks whether the key is good for a place: 1, unless another is named. */
  verify(key: string, placeid = 1): Promise<Answer> {
    return this.post('/v1/apikey', { key, body: { placeid } });
  }

  /** Asks it to stop with `signal`; resolves with its exit code, `null` where the signal ended it. */
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
