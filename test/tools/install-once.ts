import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * `node test/tools/install-once.ts FOLDER`: installs a test package from its lock file, unless it is up to date.
 */
const [folder = '.'] = process.argv.slice(2);
const lock = join(folder, 'package-lock.json');
const installed = join(folder, 'node_modules/.package-lock.json');

if (!existsSync(installed) || statSync(lock).mtimeMs > statSync(installed).mtimeMs) {
  const line = ['ci', '--prefix', folder, '--include=optional', '--ignore-scripts', '--no-audit', '--no-fund'];
  try {
    execFileSync('npm', line, { stdio: 'inherit', shell: process.platform === 'win32' });
  } catch {
    process.exitCode = 1; // npm has printed the reason
  }
}
