import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { browser } from './which-browser.ts';

/**
 * `npm run browser`: installs the browser for the tests if the lock file is newer than the installation, and
 * type-checks the tests.
 */
const folder = fileURLToPath(new URL('.', import.meta.url));

if (browser === undefined) {
  process.stdout.write(
    `The browser tests do not run on ${process.platform} (${process.arch}) unless RANKD_BROWSER names a Chrome or Chromium.\n`,
  );
} else {
  run(process.execPath, [fileURLToPath(new URL('../tools/install-once.ts', import.meta.url)), folder]);
  run('tsc', ['--noEmit', '--singleThreaded', '-p', folder]); // with several threads, each would check the shared code
}

function run(command: string, line: string[]): void {
  try {
    execFileSync(command, line, { stdio: 'inherit' });
  } catch {
    process.exit(1);
  }
}
