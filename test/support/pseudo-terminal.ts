import { spawn } from 'node:child_process';
import { vi } from 'vitest';
import { binary, type CliHome } from './run-cli.ts';

interface TerminalOptions {
  /** The text to type at each question, or a function that derives it from the screen so far. */
  answers?: Array<[question: string, answer: string | ((screen: string) => Promise<string>)]>;
  env?: Record<string, string>;
  /** The width; without it, the terminal reports no size. */
  columns?: number;
}

/**
 * Runs the built `rankd` on a pseudo-terminal (`script` from util-linux), and types each answer once its question
 * appears. Returns the whole screen and the exit code.
 */
export async function runOnTerminal(
  home: CliHome,
  args: string[],
  { answers = [], env = {}, columns }: TerminalOptions,
): Promise<{ code: number | null; screen: string }> {
  const words = [process.execPath, binary, ...args].map((word) => `'${word}'`).join(' ');
  const command = columns === undefined ? words : `stty columns ${columns} rows 24; exec ${words}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: home.cwd,
    env: { ...home.env, SHELL: '/bin/sh', ...env },
  });
  let screen = '';
  child.stdout.on('data', (chunk) => {
    screen += chunk;
  });
  const exited = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  let seen = 0;
  for (const [question, answer] of answers) {
    await vi
      .waitUntil(() => screen.includes(question, seen), { timeout: 20_000 })
      .catch(() => {
        throw new Error(`${question} was not asked:\n${screen.slice(-2_000)}`);
      });
    seen = screen.length;
    child.stdin.write(`${typeof answer === 'string' ? answer : await answer(screen)}\r`);
  }
  return { code: await exited, screen: screen.replaceAll('\r\n', '\n') };
}
