import process from 'node:process';
import type { Options } from 'tsup';

const builtin = 'builtin';

/**
 * Replaces imports of Node.js's modules with `process.getBuiltinModule`, because an import evaluates all exports of a
 * module; for `fs`, these include Node.js's streams. Exports that Node.js loads on first use, such as `BlockList` of
 * `net`, are available only through the default export: importing one by name fails the build.
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
