import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { binary, type CliHome, type CliResult } from './run-cli.ts';

const built = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/**
 * Returns a script that receives command lines over IPC and runs them all in the same process, with the build whose
 * entry point is `main`.
 */
const script = (main: string) => `
import { main } from '${main}';
const written = { stdout: '', stderr: '' };
for (const name of ['stdout', 'stderr']) {
  process[name].setMaxListeners(0); // each line adds its own listeners
  process[name].write = (chunk, ...rest) => {
    written[name] += Buffer.from(chunk).toString();
    rest.find((one) => typeof one === 'function')?.();
    return true;
  };
}
setInterval(() => undefined, 60_000);
process.on('disconnect', () => process.exit());
process.on('message', async (line) => {
  Object.assign(written, { stdout: '', stderr: '' });
  process.argv = [process.execPath, '${binary}', ...line];
  process.exitCode = undefined;
  await main();
  process.send({ code: process.exitCode ?? 0, ...written });
});
process.send('ready');`;

/**
 * Runs many command lines of the built rankd in a single process, without input and without a terminal. Starting a
 * process for each would take five times as long.
 */
export class BuiltSession implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #ready: Promise<unknown>;
  readonly #exit: Promise<unknown>;

  constructor(home: CliHome, env: Record<string, string> = {}, main = built) {
    this.#child = spawn(process.execPath, ['--input-type=module', '--eval', script(main)], {
      ...{ cwd: home.cwd, env: { ...home.env, ...env }, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] },
    });
    this.#ready = once(this.#child, 'message');
    this.#exit = once(this.#child, 'exit');
  }

  async run(line: string[]): Promise<CliResult> {
    const answer = async () => {
      await this.#ready;
      this.#child.send(line);
      const [result] = (await once(this.#child, 'message')) as [Omit<CliResult, 'json'>];
      return result;
    };
    const result = await Promise.race([answer(), this.#exit.then(() => undefined)]);
    if (result === undefined) throw new Error(`rankd ${line.join(' ')} ended the shared process`);
    return { ...result, json: () => JSON.parse(result.stdout || result.stderr) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#exit;
  }
}
