import process from 'node:process';
import type { Options } from 'tsup';

const builtin = 'builtin';

/**
 * Takes Node.js's own modules from `process` rather than by import: an import evaluates all exports of a module, which
 * for `fs` includes Node.js's streams. Exports that Node.js loads on first use, such as `BlockList` of `net`, can't be
 * imported by name: the build fails. The default export has them.
 */
export const builtinModules: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'builtin-modules',
  setup(build) {
    build.onResolve({ filter: /^node:/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: builtin, sideEffects: false } : undefined,
    );
    build.onLoad({ filter: /./, namespace: builtin }, ({ path }) => {
      const exports = Object.entries(Object.getOwnPropertyDescriptors(process.getBuiltinModule(path) ?? {}));
      const names = exports.flatMap(([name, { enumerable, get }]) => (enumerable && get === undefined ? [name] : []));
      return {
        contents: `
          const builtin = globalThis.process.getBuiltinModule('${path}');
          export default builtin;
          export const { ${names.join(', ')} } = builtin;`,
      };
    });
  },
};
