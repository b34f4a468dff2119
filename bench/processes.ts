import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, devNull } from 'node:os';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

/** `server` is the measured server's core; `load` is the core for its callers and the fake platform. */
type Core = 'server' | 'load';

const coreNumbers: Record<Core, string> = { server: '0', load: '1' };

export const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-V']).status === 0;

export function onCore(core: Core, args: string[]): [string, string[]] {
  const node = process.execPath;
  return canPin ? ['taskset', ['-c', coreNumbers[core], node, ...args]] : [node, args];
}

export function program(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** A server in a separate process. Disposal ends the process. */
export interface ServerProcess extends AsyncDisposable {
  /** e.g. `http://127.0.0.1:41503` */
  url: string;
  pid: number;
}

interface StartOptions {
  core?: Core;
  env?: Record<string, string>;
  /** Receives the server's standard error. Without it, the output is discarded. */
  logFile?: string;
}

/** Starts a server, which must print JSON with its `url` as its first line. */
export async function startServer(args: string[], { core = 'server', env = {}, logFile = devNull }: StartOptions = {}) {
  const [command, commandArgs] = onCore(core, args);
  const child = spawn(command, commandArgs, {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', openSync(logFile, 'a')],
  });
  const exited = once(child, 'exit');
  for await (const line of createInterface({ input: child.stdout as Readable })) {
    const { url } = JSON.parse(line) as { url: string };
    const server: ServerProcess = {
      url,
      pid: child.pid ?? 0,
      async [Symbol.asyncDispose]() {
        child.kill('SIGTERM');
        await exited;
      },
    };
    return server;
  }
  throw new Error(`${args.join(' ')} ended before it was listening`);
}

export function cpuMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) => {
    const [onCore] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ');
    return Number(onCore);
  });
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6;
}
