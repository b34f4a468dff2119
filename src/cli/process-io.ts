import { once } from 'node:events';
import { hostname, userInfo } from 'node:os';
import { join, sep } from 'node:path';
import type { Interface } from 'node:readline/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isatty } from 'node:tty';
import { RankdError } from '../base/errors.ts';
import { type SystemUser, thisSystem } from '../base/system.ts';
import { homeFolder } from '../config/locate.ts';
import { questionWord } from './completion/complete.ts';
import type { Io } from './io.ts';
import { commandFor } from './output/help.ts';
import { runCli } from './program.ts';
import { Signals } from './signals.ts';

// Only this file and main.ts use the global `process`.
const signals = new Signals(process, thisSystem, () => io.isTerminal && !isatty(1));
const readerGone = Promise.withResolvers<void>();
/** True once a command handles failed writes to standard output itself. */
let handlesOutputErrors = false;

// with an older Node.js, `bin/older-node.js` starts this process, which must stop if that parent is killed
process.on('disconnect', () => signals.stopOn('SIGTERM'));
process.channel?.unref();
stopWithNpx();
// without a listener, a closed stderr would end the process
process.stderr.on('error', () => undefined);

/** Log lines are written once per turn of the event loop: one write per line would cost as much as a request. */
let logged = '';
process.on('exit', writeLog);
process.on('exit', () => process.exit()); // exits before Node.js closes a database that was deliberately left open
/** In bytes of unread log output. */
const maxWaitingLog = 1_048_576;
/** The maximum time that a stopped daemon waits for its log to be read. */
const logDrainTimeoutMs = 1_000;

const packageDir = join(import.meta.dirname, '..');
const io: Io = {
  stdout: (output) => void process.stdout.write(output),
  drained: async () => {
    if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain');
    await nextTurn(); // Node.js frees written chunks only in the next turn
  },
  stdoutBytes,
  stderr: (output) => {
    writeLog(); // the buffered log lines come first
    process.stderr.write(output);
  },
  log(line) {
    if (logged === '') setImmediate(writeLog);
    logged += line;
  },
  isLogFull: () => process.stderr.writableLength + logged.length > maxWaitingLog,
  isTerminal: process.stdout.isTTY === true && process.stdin.isTTY === true,
  stdoutIsTerminal: process.stdout.isTTY === true,
  get screenSize() {
    const { columns, rows } = process.stdout;
    return columns > 0 && rows > 0 ? { columns, rows } : undefined;
  },
  showsProgress: process.stderr.isTTY === true,
  ask,
  askHidden,
  readLines,
  readStdin,
  stdinBytes: () => process.stdin,
  stdinIsTerminal: process.stdin.isTTY === true,
  readSecret: (question) => (process.stdin.isTTY ? askHidden(question) : readStdin()),
  system: thisSystem,
  env: process.env,
  get cwd() {
    return currentFolder();
  },
  user: processUser(),
  nodeVersion: process.versions.node,
  nodeOptions: process.execArgv,
  pid: process.pid,
  command: [process.execPath, join(packageDir, 'bin', 'rankd.js')],
  get typedAs() {
    return commandFor({ script: process.argv[1] ?? '', cwd: folderIfAny(), env: process.env, launcher: launcher() });
  },
  packageDir,
  home: homeFolder(process.env),
  serviceDataDir: thisSystem.serviceDataDir,
  operator: `cli:${userName()}@${hostname()}`,
  get stopSignal() {
    return signals.stop;
  },
  onReload: (listener) => signals.onReload(listener),
  readerGone: readerGone.promise,
};

/** Runs this process's command line. `outputFailed` ends a command whose output has been closed. */
export async function run(line: string[], outputFailed: (error: NodeJS.ErrnoException) => never): Promise<void> {
  process.stdout.on('error', (error) => {
    readerGone.resolve();
    if (!signals.hasReload && !handlesOutputErrors) outputFailed(error); // a daemon continues to serve without a reader
  });
  process.exitCode = await runCli(line, io);
  // a slow database server must not block the shell
  if (line[0] === questionWord) process.stdout.write('', () => process.exit());
  if (signals.hasReload) setTimeout(() => process.exit(), logDrainTimeoutMs).unref();
}

function writeLog(): void {
  const lines = logged;
  logged = '';
  if (lines !== '') process.stderr.write(lines);
}

function stdoutBytes(chunk: Uint8Array): Promise<void> {
  handlesOutputErrors = true;
  return new Promise((resolve, reject) => {
    process.stdout.write(chunk, (error) => (error ? reject(error) : resolve()));
  });
}

/**
 * Under npx, stops this process once its parent has ended: a signal to `npx` ends npm and its shell, but does not reach
 * rankd.
 */
function stopWithNpx(): void {
  if (process.env['npm_command'] !== 'exec') return;
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    signals.stopOn('SIGTERM');
  }, 500).unref();
}

async function readLines(listener: (line: string) => void): Promise<Disposable> {
  const { createInterface } = await import('node:readline');
  const lines = createInterface({ input: process.stdin });
  process.stdin.on('error', () => lines.close()); // an error counts as the end of the input
  lines.on('line', listener);
  return { [Symbol.dispose]: () => lines.close() };
}

async function readStdin(): Promise<string> {
  return (await import('node:stream/consumers')).text(process.stdin);
}

async function ask(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  return answer(createInterface({ input: process.stdin, output: process.stderr }), question);
}

async function askHidden(question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const { Writable } = await import('node:stream');
  const discardedOutput = new Writable({ write: (_text, _encoding, done) => done() });
  // from here on, typed text is hidden
  const lines = createInterface({ input: process.stdin, output: discardedOutput, terminal: true });
  process.stderr.write(question);
  const typed = await answer(lines, '');
  process.stderr.write('\n');
  return typed;
}

/** Exits with 130 on Ctrl-C, or at the end of the input. */
async function answer(lines: Interface, question: string): Promise<string> {
  const exitInterrupted = () => {
    process.stderr.write(`\n${io.interruptMessage === undefined ? '' : `${io.interruptMessage}\n`}`);
    process.exit(130);
  };
  lines.once('SIGINT', exitInterrupted).once('close', exitInterrupted);
  const line = await lines.question(question);
  lines.off('close', exitInterrupted).close();
  return line;
}

function currentFolder(): string {
  try {
    return process.cwd();
  } catch (cause) {
    throw new RankdError('not_found', 'The folder that rankd was started in no longer exists.', {
      hint: 'cd to a folder that exists, then run the command again',
      cause,
    });
  }
}

/** Returns the path of the start program, if rankd is portable (`npm run portable`). */
function launcher(): string | undefined {
  const isPortable = process.execPath.startsWith(join(packageDir, 'runtime') + sep);
  return isPortable ? join(packageDir, thisSystem.name === 'windows' ? 'rankd.cmd' : 'rankd') : undefined;
}

function folderIfAny(): string | undefined {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
}

function processUser(): SystemUser | undefined {
  const { geteuid, getegid } = process; // absent on Windows
  return geteuid && getegid && { uid: geteuid(), gid: getegid() };
}

/** Falls back to the user id, because containers can run as a user without a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
