import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { defineConfig } from 'tsup';
import { builtinModules } from './config/build/builtin-modules.ts';
import { leftOut } from './config/build/left-out.ts';
import { oneStart } from './config/build/one-start.ts';
import { writeNotices } from './config/build/third-party-notices.ts';
import { readGameScripts, toModel } from './src/cli/game-models.ts';

const page = 'dist/dashboard';

export default defineConfig([
  /** Bundles all packages except the `dependencies` in package.json. Lazy imports become separate files. */
  {
    entry: { main: 'src/main.ts', 'writer-thread': 'src/stores/sqlite/engine/writer-thread.ts' },
    format: 'esm',
    target: 'node22',
    // Fastify loads these only for schemas and injected requests, which rankd does not use.
    external: ['@fastify/ajv-compiler', '@fastify/fast-json-stringify-compiler', 'light-my-request'],
    clean: ['!dashboard/**'],
    minifyWhitespace: true,
    minifySyntax: true,
    removeNodeProtocol: false, // builtinModules recognizes Node.js's modules by the prefix
    // Fastify loads semver only for plugins that declare the Fastify version they need, and prom-client loads
    // OpenTelemetry only for exemplars. rankd uses neither.
    esbuildPlugins: [oneStart('src/cli/process-io.ts'), builtinModules, leftOut('semver', '@opentelemetry/api')],
    metafile: true,
    // Bundled CommonJS packages call `require`, which ES modules do not have.
    banner: {
      js: "const require = process.getBuiltinModule('node:module').createRequire(import.meta.url);",
    },
    onSuccess: async () => {
      cpSync('src/game', 'dist/game', { recursive: true });
      writeModels('dist/game');
      writeFileSync('dist/rankd.1', execFileSync(process.execPath, ['bin/rankd.js', 'man']));
      writeNotices(['dist', page]);
    },
  },
  /** The dashboard's page. Its file names contain a hash, so that browsers can cache the files forever. */
  {
    entry: ['src/dashboard/page/main.tsx', 'src/dashboard/page/style.css', 'src/dashboard/page/icon.svg'],
    loader: { '.svg': 'copy' },
    outDir: page,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    splitting: true,
    clean: true,
    minify: true,
    metafile: true,
    noExternal: [/./],
    tsconfig: 'src/dashboard/page/tsconfig.json',
    esbuildOptions: (options) => {
      options.entryNames = '[name]-[hash]';
      options.chunkNames = '[name]-[hash]';
    },
    onSuccess: async () => {
      const built = readdirSync(page);
      const html = readFileSync('src/dashboard/page/index.html', 'utf8');
      const hashed = (name: string) => built.find((file) => file.startsWith(`${name}-`)) ?? name;
      writeFileSync(
        `${page}/index.html`,
        html.replaceAll(/(?<=")\/(\w+)\.\w+(?=")/g, (_, name) => `/${hashed(name)}`),
      );
      writeNotices(['dist', page]);
    },
  },
]);

/** Writes the models for Roblox Studio that `rankd game write` makes, but with a Config for the user to fill in. */
function writeModels(folder: string): void {
  const { rankd, systems, pieces } = readGameScripts('.');
  const models = [['Rankd', [rankd]], ...systems, ...pieces] as const;
  for (const [name, scripts] of models) writeFileSync(`${folder}/${name}.rbxmx`, toModel([...scripts]));
}
