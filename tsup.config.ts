import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { defineConfig } from 'tsup';

/** What Fastify would load for schemas of its own and for requests without a socket: rankd has neither, and both are half of its size. */
const neverLoaded = ['@fastify/ajv-compiler', '@fastify/fast-json-stringify-compiler', 'light-my-request'];

// One bundle with lazily loaded chunks: a command that does not serve never parses fastify, zod or pino.
export default defineConfig({
  entry: ['src/main.ts'],
  format: 'esm',
  target: 'node22',
  platform: 'node',
  splitting: true,
  clean: true,
  noExternal: [new RegExp(`^(?!(better-sqlite3|${neverLoaded.join('|')})$)[a-z@]`)],
  external: ['better-sqlite3', ...neverLoaded],
  // Bundled CommonJS packages call require(); an ES module has none of its own.
  banner: {
    js: "const require = globalThis.process.getBuiltinModule('node:module').createRequire(import.meta.url);",
  },
  metafile: true,
  removeNodeProtocol: false,
  plugins: [{ name: 'node-modules', renderChunk: (code) => ({ code: takeNodeModulesAsTheyAre(code) }) }],
  onSuccess: async () => {
    writeLicenses();
    writeFileSync('dist/rankd.1', execFileSync(process.execPath, ['bin/rankd.js', 'man']));
  },
});

/** By which commander starts commands that are programs of their own: rankd has none, and `node:child_process` takes its time. */
const commandersOwn = 'childProcess';

/**
 * Importing a module of Node evaluates all that it exports, which for `node:http` is `fetch` with HTTP/2 and TLS: longer than
 * the rest of a command takes. The module itself, asked for, costs what is used of it.
 */
function takeNodeModulesAsTheyAre(chunk: string): string {
  const taken: string[] = [];
  const rest = chunk.replaceAll(/^import (.+) from "(node:[\w/]+)";$/gm, (_, names: string, from: string) => {
    if (names === commandersOwn) return `const ${names} = undefined;`;
    const bound = names.startsWith('{') ? names.replaceAll(' as ', ': ') : names.replace('* as ', '');
    taken.push(`const ${bound} = globalThis.process.getBuiltinModule("${from}");`);
    return '';
  });
  return [...taken, rest.replaceAll(/\bimport\(("node:[\w/]+")\)/g, 'globalThis.process.getBuiltinModule($1)')].join(
    '\n',
  );
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
