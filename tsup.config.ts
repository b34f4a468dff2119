import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { defineConfig } from 'tsup';

/** What Fastify would load for schemas of its own and for requests without a socket: rankd has neither, and both are half of its size. */
const neverLoaded = ['@fastify/ajv-compiler', '@fastify/fast-json-stringify-compiler', 'light-my-request'];

/** The entry, and what is imported when it is needed and with that begins a file of its own in the bundle. */
const loadedLater = new Set([
  resolve('src/main.ts'),
  ...readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => {
      const file = resolve('src', name);
      const imports = readFileSync(file, 'utf8').matchAll(/\bimport\('(\.[^']+)'\)/g);
      return [...imports].map(([, target = '']) => resolve(dirname(file), target));
    }),
]);

/** What is bundled of a file of a package instead of its source. */
const otherSources: Array<[file: RegExp, other: (source: string) => string]> = [
  // All that Fastify asks of it, about the versions of plugins, of which rankd has none: forty modules that each start would load.
  [
    /node_modules\/semver\/index\.js$/,
    () =>
      ['coerce', 'gt', 'satisfies']
        .map((name) => `exports.${name} = (...args) => require('./functions/${name}.js')(...args);`)
        .join('\n'),
  ],
  // The JavaScript of better-sqlite3 is bundled, as the ten files that it is in are a fifteenth of the time of a command. Its addon is
  // loaded from the installed package, which therefore is to be of exactly the version that is bundled.
  [
    /node_modules\/better-sqlite3\/lib\/binding\.js$/,
    (source) => source.replaceAll('__dirname', "path.dirname(require.resolve('better-sqlite3'))"),
  ],
];

/**
 * Small modules that most of those share. Imported by some of them, each would be one more file, and to load a file costs a start
 * half a millisecond; imported by all, they are one.
 */
const shared = [
  'base/errors',
  'base/clock',
  'base/version',
  'base/escape-controls',
  'base/listen-error',
  'core/api-key',
  'core/model',
  'base/shorten',
  'base/duration',
  'config/locate',
  'config/moment',
  'config/problem',
];

// One bundle with lazily loaded chunks: a command that does not serve never parses fastify, zod or pino. It is CommonJS, which esbuild
// does not split, so its chunks are made of those for ES modules; bin/bundle.js loads them.
export default defineConfig({
  entry: ['src/main.ts'],
  format: 'esm',
  target: 'node22',
  platform: 'node',
  splitting: true,
  clean: true,
  outExtension: () => ({ js: '.cjs' }),
  define: { 'import.meta.dirname': '__dirname' },
  noExternal: [new RegExp(`^(?!(${neverLoaded.join('|')})$)[a-z@]`)],
  external: neverLoaded,
  metafile: true,
  removeNodeProtocol: false,
  esbuildPlugins: [
    {
      name: 'other-sources',
      setup(build) {
        for (const [filter, other] of otherSources)
          build.onLoad({ filter }, ({ path }) => ({ contents: other(readFileSync(path, 'utf8')) }));
      },
    },
    {
      name: 'shared-modules',
      setup(build) {
        build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
          if (!loadedLater.has(path)) return undefined;
          const imports = shared.map((name) => `import '${import.meta.dirname}/src/${name}.ts';`);
          return { loader: 'ts', contents: [readFileSync(path, 'utf8'), ...imports].join('\n') };
        });
      },
    },
  ],
  plugins: [{ name: 'common-js', renderChunk: (code) => ({ code: toCommonJs(takeNodeModulesAsTheyAre(code)) }) }],
  onSuccess: async () => {
    writeLicenses();
    writeFileSync('dist/rankd.1', execFileSync(process.execPath, ['bin/rankd.js', 'man']));
    rmSync('dist/.cache', { recursive: true, force: true }); // of other builds, and of a command that is of no use again
  },
});

/** By which commander starts commands that are programs of their own: rankd has none, and `node:child_process` takes its time. */
const commandersOwn = 'childProcess';

/** Modules of Node that only have functions for us, and take longer to load than most commands need for the rest. */
const loadedOnCall = new Set(['node:crypto', 'node:zlib', 'node:v8']);

const assertion = '((isTrue, message) => { if (!isTrue) throw new Error(message); })';

/** What CommonJS packages ask for as they are loaded, and what is enough of it for rankd. */
const standIns: Record<string, string> = {
  assert: assertion,
  'node:assert': assertion,
  // Fastify's, for servers that speak TLS themselves; rankd is behind a proxy where it is on the net.
  'node:http2': '{}',
  'node:https': '{}',
  // pino's, for transports, of which rankd has none.
  worker_threads: '{ isMainThread: true }',
};

/**
 * Importing a module of Node evaluates all that it exports, which for `node:http` is `fetch` with HTTP/2 and TLS: longer than
 * the rest of a command takes. The module itself, asked for, costs what is used of it.
 */
function takeNodeModulesAsTheyAre(chunk: string): string {
  const taken: string[] = [];
  const rest = chunk.replaceAll(/^import (.+) from "(node:[\w/]+)";$/gm, (_, names: string, from: string) => {
    if (names === commandersOwn) return `const ${names} = undefined;`;
    const module = `globalThis.process.getBuiltinModule("${from}")`;
    if (loadedOnCall.has(from))
      taken.push(...functionsOf(names).map(([name, as]) => `const ${as} = (...args) => ${module}.${name}(...args);`));
    else
      taken.push(
        `const ${names.startsWith('{') ? names.replaceAll(' as ', ': ') : names.replace('* as ', '')} = ${module};`,
      );
    return '';
  });
  const standing = rest.replaceAll(
    /\b(?:__)?require\d*\("([\w:]+)"\)/g,
    (call, from: string) => standIns[from] ?? call,
  );
  return [
    ...taken,
    standing.replaceAll(/\bimport\(("node:[\w/]+")\)/g, 'globalThis.process.getBuiltinModule($1)'),
  ].join('\n');
}

/** What one chunk imports from another is there once that has run, and never changes. Throws where an import or export is left. */
function toCommonJs(chunk: string): string {
  const code = chunk
    .replaceAll(
      /^import (\{[^}]*\}) from ("[^"]+");$/gm,
      (_, names: string, from: string) => `const ${names.replaceAll(' as ', ': ')} = require(${from});`,
    )
    .replaceAll(/^import ("[^"]+");$/gm, 'require($1);')
    .replaceAll(
      /^export \{([^}]*)\};$/gm,
      (_, names: string) => `Object.assign(exports, {${names.replaceAll(/([\w$]+) as ([\w$]+)/g, '$2: $1')}});`,
    )
    .replaceAll(/\bimport\(("\.\/[^"]+")\)/g, 'Promise.resolve().then(() => require($1))');
  const left = /^(?:import|export)\b.*/m.exec(code)?.[0];
  if (left !== undefined) throw new Error(`no CommonJS for: ${left}`);
  return `"use strict";\n${code}`;
}

/** The names in `{ a, b as c }`, as they are exported and as they are called here. Throws where they can't all be functions. */
function functionsOf(names: string): Array<[string, string]> {
  if (!/^\{[a-z\d\s,]+\}$/i.test(names) || /\b[A-Z]|\bconstants\b/.test(names))
    throw new Error(`not only functions: import ${names}`);
  return names
    .replaceAll(/[{}\s]+/g, ' ')
    .trim()
    .split(', ')
    .map((one) => {
      const [name = '', as = name] = one.split(' as ');
      return [name, as];
    });
}

/** The licenses of the packages that went into the bundle, as they ask for. */
function writeLicenses(): void {
  const metafile = 'dist/metafile-esm.json';
  const { inputs } = JSON.parse(readFileSync(metafile, 'utf8')) as { inputs: Record<string, unknown> };
  const folders = Object.keys(inputs).flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? '' : readFileSync(`${folder}/${file}`, 'utf8').trim();
    return `${name} ${version} (${license})\n\n${text}`;
  });
  writeFileSync('dist/third-party-licenses.txt', `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`);
  rmSync(metafile);
}
