// Runs the bundle: loads its chunks, which are CommonJS, with what was compiled of them in an earlier start. Like the files beside it, it
// imports nothing of Node, as that would evaluate more than is used of it.
import { compile, keepCompiled } from './compiled.js';

const { readFileSync } = process.getBuiltinModule('node:fs');
const { createRequire } = process.getBuiltinModule('node:module');
const { join } = process.getBuiltinModule('node:path');

const dist = join(import.meta.dirname, '../dist');
/** What each chunk exports. */
const loaded = new Map();
const fromPackages = createRequire(join(dist, 'main.cjs'));
const require = Object.assign((id) => (id.startsWith('./') ? load(id.slice(2)) : fromPackages(id)), {
  resolve: fromPackages.resolve,
});

const { main } = load('main.cjs');
// A daemon may end without a warning, or so late that V8 has dropped what only the start needed.
setTimeout(keepCompiled, 2_000).unref();
process.on('exit', keepCompiled);
await main();

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
