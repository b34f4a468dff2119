import type { Options } from 'tsup';

/** Replaces packages with an empty module, so that the first use of one throws. */
export function leftOut(...packages: string[]): NonNullable<Options['esbuildPlugins']>[number] {
  const namespace = 'left-out';
  return {
    name: namespace,
    setup(build) {
      build.onResolve({ filter: /./ }, ({ path }) => (packages.includes(path) ? { path, namespace } : undefined));
      build.onLoad({ filter: /./, namespace }, () => ({ contents: 'module.exports = {};' }));
    },
  };
}
