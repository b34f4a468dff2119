import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Finding } from '../findings.ts';
import { spreadOf } from '../rounds.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Measures the tarball that npm would publish, and counts the packages that installing it adds. */
export async function packed(): Promise<Finding[]> {
  const folder = mkdtempSync(join(tmpdir(), 'rankd-packed-'));
  try {
    const npm = (...args: string[]) =>
      execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const tarball = join(folder, npm('pack', root, '--ignore-scripts').trim().split('\n').at(-1) ?? '');
    writeFileSync(join(folder, 'package.json'), '{}');
    npm('install', tarball);
    const lock = JSON.parse(readFileSync(join(folder, 'node_modules/.package-lock.json'), 'utf8')) as {
      packages: object;
    };
    const common = { what: 'install from the packed tarball', against: '' };
    return [
      {
        ...common,
        figure: 'packages',
        unit: 'packages',
        goal: { atMost: 4 },
        ...spreadOf([Object.keys(lock.packages).length]),
      },
      {
        ...common,
        figure: 'tarball, without better-sqlite3',
        unit: 'KB',
        goal: { atMost: 900 },
        ...spreadOf([statSync(tarball).size / 1000]),
      },
    ];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
