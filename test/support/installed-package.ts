import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Packs the latest build as npm would publish it, and installs the tarball in a new folder. npm installs the
 * dependencies as links to this clone, so it needs no network. Returns the path of the installed command.
 */
export function installPackage(folder: string): string {
  const app = join(folder, 'app');
  mkdirSync(app, { recursive: true });
  const npm = (line: string[]) =>
    execFileSync('npm', [...line, '--ignore-scripts', '--loglevel=error'], {
      cwd: app,
      encoding: 'utf8',
      shell: process.platform === 'win32',
    });
  const tarball = npm(['pack', root, '--pack-destination', folder]).trim().split('\n').at(-1) ?? '';
  const dependencies = ['better-sqlite3', 'node-addon-api'].map((name) => join(root, 'node_modules', name));
  npm(['install', '--offline', '--no-audit', '--no-fund', join(folder, tarball), ...dependencies]);
  return join(app, 'node_modules/rankd/bin/rankd.js');
}
