import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * `node test/tools/side-by-side.ts SCRIPT…`: runs scripts from package.json concurrently, and prints each script's
 * whole output when it ends. Fails if one of them fails.
 */
async function run(script: string): Promise<boolean> {
  const child = spawn('npm', ['run', script], {
    shell: process.platform === 'win32',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
  const [code] = await once(child, 'close');
  process.stdout.write(Buffer.concat(output));
  if (code !== 0) process.stdout.write(`npm run ${script} failed\n`);
  return code === 0;
}

const succeeded = await Promise.all(process.argv.slice(2).map(run));
process.exitCode = succeeded.every(Boolean) ? 0 : 1;
