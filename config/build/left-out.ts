import type { Options } from 'tsup';

/** Replaces packages that rankd never calls with an empty module. A call would throw. */
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
