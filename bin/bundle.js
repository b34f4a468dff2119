// Runs the bundle: loads its chunks, which are CommonJS, with what was compiled of them in an earlier start. It and what it
// imports ask for Node's modules by name, as an import would evaluate more of them than is used.
import { compile, keepCompiled } from './compiled.js';

const { existsSync, readFileSync } = process.getBuiltinModule('node:fs');
const { createRequire } = process.getBuiltinModule('node:module');
const { join } = process.getBuiltinModule('node:path');

const dist = join(import.meta.dirname, '../dist');
const entry = join(dist, 'main.cjs');
/** What each chunk exports. */
const loaded = new Map();
const fromPackages = createRequire(entry);
const require = Object.assign((id) => (id.startsWith('./') ? load(id.slice(2)) : fromPackages(id)), {
  resolve: fromPackages.resolve,
});

if (existsSync(entry)) {
  const { main } = load('main.cjs');
  // A daemon may end without a warning, or so late that V8 has dropped what only the start needed.
  setTimeout(keepCompiled, 2_000).unref();
  process.on('exit', keepCompiled);
  await main();
} else {
  process.stderr.write(`error: rankd is not built: there is no ${entry}.\n`);
  process.stderr.write('try: npm ci, which builds it, or npm run build, in the folder of rankd\n');
  process.exitCode = 78;
}

function load(name) {
  if (!loaded.has(name)) loaded.set(name, run(name));
  return loaded.get(name);
}

function run(name) {
  const code = `(function (exports, require, __dirname) { ${readFileSync(join(dist, name), 'utf8')}\n})`;
  const exports = {};
  compile(name, code).runInThisContext()(exports, require, dist);
  return exports;
}
