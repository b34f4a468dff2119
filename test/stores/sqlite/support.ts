import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

/** A directory that is gone when the test is. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'rankd-sqlite-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Permission bits, e.g. `600`. */
export function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

/** How many commits are in the write-ahead log of a database: frames that end one tell the size of the database (https://sqlite.org/fileformat2.html#walformat). */
export function commitsIn(file: string): number {
  const log = readFileSync(`${file}-wal`);
  const frameLength = 24 + log.readUInt32BE(8);
  let commits = 0;
  for (let at = 32; at + frameLength <= log.length; at += frameLength) commits += log.readUInt32BE(at + 4) > 0 ? 1 : 0;
  return commits;
}

/** Starts another Node process on a module whose text is given; killed with the test at the latest. */
export function startNode(code: string, options: { uid?: number } = {}): ChildProcess {
  const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '--eval', code], {
    cwd: new URL('../../..', import.meta.url),
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options,
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** What a module prints, as JSON. */
export async function runNode<T>(code: string, options: { uid?: number } = {}): Promise<T> {
  const child = startNode(code, options);
  if (child.stdout === null) throw new Error('no stdout');
  const [printed] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return JSON.parse(printed);
}
