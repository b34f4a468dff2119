import { dirname, resolve } from 'node:path';

/** What of esbuild's plugins is used here. */
interface Build {
  onResolve(on: { filter: RegExp }, answer: (asked: Asked) => { path: string; namespace: string } | undefined): void;
  onLoad(
    on: { filter: RegExp; namespace: string },
    answer: (asked: { path: string }) => { contents: string; resolveDir: string },
  ): void;
}

interface Asked {
  path: string;
  kind: string;
  namespace: string;
  importer: string;
}

const later = 'imported-later';

/**
 * A bundler puts what several files share that are imported later into a chunk of its own for each set of them: forty files for the
 * simplest command. Here, all that is imported later comes after `start`, which each command loads. So each is told to import it:
 * then all that belongs to `start` is shared by the same set, and becomes one file.
 */
export function sharedStart(start: string) {
  return {
    name: 'shared-start',
    setup: (build: Build) => {
      build.onResolve({ filter: /^\./ }, ({ path, kind, namespace, importer }) => {
        const file = resolve(dirname(importer), path);
        const isLater = kind === 'dynamic-import' && namespace !== later && file !== resolve(start);
        return isLater ? { path: file, namespace: later } : undefined;
      });
      build.onLoad({ filter: /./, namespace: later }, ({ path }) => ({
        contents: `import ${JSON.stringify(resolve(start))}; export * from ${JSON.stringify(path)};`,
        resolveDir: dirname(path),
      }));
    },
  };
}
