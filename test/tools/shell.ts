import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter } from 'node:path';
import { documentedPort } from '../support/readme-commands.ts';

/** Runs commands in a shell, without this project's own programs on the PATH. */
export class Shell {
  lastOutput = '';
  readonly #folder: string;
  readonly #port: string;
  readonly #env: Record<string, string>;
  #server: ChildProcess | undefined;

  /** `port` replaces the documented port in the commands. */
  constructor({ folder, port, env }: { folder: string; port: number; env: Record<string, string> }) {
    this.#folder = folder;
    this.#port = String(port);
    this.#env = { ...outsideEnv(), ...env, RANKD_SERVER_PORT: String(port) };
  }

  /** Runs a command. Resolves with its duration in seconds; rejects if it fails. */
  async run(command: string): Promise<number> {
    const startedAt = performance.now();
    const child = this.#start(command);
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`${command} ended with ${code}: ${this.lastOutput}`);
    return secondsSince(startedAt);
  }

  /** Starts a daemon. Resolves with the number of seconds until it is listening. */
  async serve(command: string): Promise<number> {
    const startedAt = performance.now();
    const child = this.#start(command);
    this.#server = child;
    while (!this.lastOutput.includes('rankd listens on')) {
      if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}: ${this.lastOutput}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return secondsSince(startedAt);
  }

  async stop(): Promise<void> {
    const server = this.#server;
    if (server?.pid === undefined || server.exitCode !== null) return;
    const closed = once(server, 'close');
    process.kill(-server.pid, 'SIGTERM');
    await closed;
  }

  #start(command: string): ChildProcess {
    this.lastOutput = '';
    const typed = command.replaceAll(`:${documentedPort}`, `:${this.#port}`);
    const options = { cwd: this.#folder, env: this.#env, detached: true };
    const child = spawn('bash', ['-c', typed], options);
    child.stdin.end();
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        this.lastOutput += chunk;
      });
    }
    return child;
  }
}

/** Starts a tool's server. If its port is taken, prints one sentence and exits. */
export async function listenOrExit<Server>(starting: Promise<Server>): Promise<Server> {
  try {
    return await starting;
  } catch (error) {
    const { code, port } = error as { code?: string; port?: number };
    if (code !== 'EADDRINUSE') throw error;
    process.stderr.write(
      `Another program is already listening on port ${port}; choose another one with -- --port PORT.\n`,
    );
    process.exit(1);
  }
}

/** Returns a port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** Returns the environment for a shell that `npm run` did not start. */
function outsideEnv(): Record<string, string> {
  const entries = Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined || /^npm_/i.test(name) ? [] : [[name, value] as const],
  );
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((part) => !part.includes('node_modules'));
  return { ...Object.fromEntries(entries), PATH: path.join(delimiter) };
}

function secondsSince(startedAt: number): number {
  return (performance.now() - startedAt) / 1000;
}
