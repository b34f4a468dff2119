import { dirname, resolve } from 'node:path';
import type { Options } from 'tsup';

const lazy = 'lazy';

/**
 * Bundles `start` and all its static imports into one file. By default, esbuild creates a chunk for each combination of
 * lazy imports that share code, and every command would load fifty chunks. This plugin adds an import of `start`, which
 * is always loaded first, to each lazily imported module. All of them then share all code of `start`, so it stays in
 * one file.
 */
export function oneStart(start: string): NonNullable<Options['esbuildPlugins']>[number] {
  return {
    name: 'one-start',
    setup(build) {
      build.onResolve({ filter: /^\./ }, ({ path, kind, namespace, importer }) => {
        const file = resolve(dirname(importer), path);
        const isLazy = kind === 'dynamic-import' && namespace !== lazy && file !== resolve(start);
        return isLazy ? { path: file, namespace: lazy } : undefined;
      });
      build.onLoad({ filter: /./, namespace: lazy }, ({ path }) => ({
        contents: `import ${JSON.stringify(resolve(start))}; export * from ${JSON.stringify(path)};`,
        resolveDir: dirname(path),
      }));
    },
  };
}
