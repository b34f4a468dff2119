import { execFile } from 'node:child_process';
import { binary, type CliResult, compileCache } from './run-cli.ts';

/** Runs the built `rankd` subject to file permissions, even if the tests run as root. */
export async function runUnprivileged(
  args: string[],
  dataDir: string,
  env: Record<string, string> = {},
): Promise<Omit<CliResult, 'json'>> {
  const command = [process.execPath, binary, ...args, '--data-dir', dataDir];
  // Root bypasses file permissions by means of capabilities, which setpriv drops.
  const asRoot = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-dac_override'];
  const [file = '', ...rest] = process.getuid?.() === 0 ? [...asRoot, ...command] : command;
  return new Promise((resolve) => {
    execFile(
      file,
      rest,
      { env: { PATH: process.env['PATH'], HOME: dataDir, NODE_COMPILE_CACHE: compileCache, ...env }, cwd: '/' },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}
