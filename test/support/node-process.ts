import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** Runs a module's source text in a separate Node.js process, which is killed at the end of the test. */
export function startNode(code: string, options: { uid?: number } = {}): ChildProcess {
  const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '--eval', code], {
    cwd: new URL('../..', import.meta.url),
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options,
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

export async function runNode<T>(code: string, options: { uid?: number } = {}): Promise<T> {
  const child = startNode(code, options);
  if (child.stdout === null) throw new Error('no stdout');
  const [printed] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return JSON.parse(printed);
}
