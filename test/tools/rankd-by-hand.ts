import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { documentedPort } from '../support/readme-commands.ts';
import { freePort } from './shell.ts';

/** The timeout for a command, for a request, and for starting or stopping a daemon. */
const timeoutMs = 60_000;

export interface Program {
  node: string;
  script: string;
}

/** Runs rankd in a new user's home, without a shell, because shells differ between systems. */
export class RankdByHand {
  readonly #program: Program;
  readonly #folder: string;
  readonly #env: Record<string, string | undefined>;
  readonly #port: number;
  #daemon: ChildProcessWithoutNullStreams | undefined;

  private constructor({ program, folder, env = {}, port }: Home & { port: number }) {
    this.#program = program;
    this.#folder = join(folder, 'work');
    mkdirSync(this.#folder);
    this.#env = { ...homeOf(folder), ...env, RANKD_SERVER_PORT: String(port) };
    this.#port = port;
  }

  static async open(home: Home): Promise<RankdByHand> {
    return new RankdByHand({ ...home, port: await freePort() });
  }

  path(name: string): string {
    return join(this.#folder, name);
  }

  /**
   * Runs a command from a page; `line` can omit the word `rankd`. Resolves with its output. Throws if its exit code is
   * not `code`, or if its output does not match `expected`.
   */
  async run(
    line: string,
    { code = 0, expected }: { code?: number; expected?: RegExp | undefined } = {},
  ): Promise<string> {
    const child = this.#start(line.replace(/^(npx )?rankd /, '').split(' '));
    const output = collect(child);
    const [ended] = await once(child, 'close', { signal: AbortSignal.timeout(timeoutMs) });
    if (ended !== code) throw new Error(`The exit code is ${ended}, not ${code}:\n${output()}`);
    if (expected !== undefined && !expected.test(output()))
      throw new Error(`The output does not match ${expected}:\n${output()}`);
    return output();
  }

  /** Sends the request that a `curl` line in the docs describes. Throws unless the response is 200. */
  async request(line: string): Promise<void> {
    const [, url = '', keyFile = '', body = ''] =
      /^curl -sw '\\n' '?(http[^\s']+)'? -H "Authorization: Bearer \$\(cat (\S+)\)" -d '(.+)'$/.exec(line) ?? [];
    const key = readFileSync(this.path(keyFile), 'utf8').trim();
    const request = http.request(url.replace(`:${documentedPort}`, `:${this.#port}`), {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      agent: false, // no connection reuse, like curl
      signal: AbortSignal.timeout(timeoutMs),
    });
    request.end(body);
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
    const output = await text(answer);
    if (answer.statusCode !== 200) throw new Error(`The response is ${answer.statusCode}: ${output}`);
  }

  /** Resolves once the daemon is listening. */
  async serve(...options: string[]): Promise<void> {
    const child = this.#start(['serve', ...options]);
    const output = collect(child);
    this.#daemon = child;
    const deadline = performance.now() + timeoutMs;
    while (!output().includes('rankd listens on')) {
      if (child.exitCode !== null) throw new Error(`The daemon exited with ${child.exitCode}:\n${output()}`);
      if (performance.now() > deadline) throw new Error(`The daemon does not listen:\n${output()}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Stops the daemon with SIGTERM. Windows does not have that signal, so Node.js kills the daemon there. */
  async stop(): Promise<void> {
    const code = await this.#end('SIGTERM');
    if (code !== 0 && code !== null) throw new Error(`The daemon exited with ${code}.`);
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Resolves with the exit code, or `null` if the signal killed the process. */
  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#daemon;
    this.#daemon = undefined;
    if (child === undefined || child.exitCode !== null) return child?.exitCode ?? 0;
    const closed = once(child, 'close', { signal: AbortSignal.timeout(timeoutMs) });
    child.kill(signal);
    return (await closed)[0];
  }

  #start(args: string[]): ChildProcessWithoutNullStreams {
    const child = spawn(this.#program.node, [this.#program.script, ...args], { cwd: this.#folder, env: this.#env });
    child.stdin.end();
    return child;
  }
}

interface Home {
  program: Program;
  /** An empty folder. */
  folder: string;
  env?: Record<string, string>;
}

function collect(child: ChildProcessWithoutNullStreams): () => string {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  return () => output;
}

/**
 * Returns this process's environment without the variables of npm, rankd and XDG, with a different home and, except on
 * Windows, with a data directory. Without the latter, commands would use the data directory of a rankd service if the
 * machine has one.
 */
function homeOf(folder: string): Record<string, string | undefined> {
  const entries = Object.entries(process.env).filter(([name]) => !/^(npm|rankd|xdg)_/i.test(name));
  const profile = { APPDATA: join(folder, 'Roaming'), LOCALAPPDATA: join(folder, 'Local') };
  return {
    ...Object.fromEntries(entries),
    ...(process.platform === 'win32' ? profile : { RANKD_DATA_DIR: join(folder, 'data') }),
    HOME: folder,
    USERPROFILE: folder,
  };
}
