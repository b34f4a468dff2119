// Loads the bundle, with what V8 compiled of it in an earlier start: of every function that had run by then. Node's own compile
// cache keeps a file as it is compiled before it runs, when most of its functions are not, so each start would compile those anew.
// It imports nothing of Node, as that would evaluate more than is used of it.
const { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } = process.getBuiltinModule('node:fs');
const { createRequire } = process.getBuiltinModule('node:module');
const { join } = process.getBuiltinModule('node:path');
const { Script } = process.getBuiltinModule('node:vm');

const dist = join(import.meta.dirname, '../dist');
const cache = openCache();
/** What each file of the bundle exports. */
const loaded = new Map();
/** Scripts that the cache did not have, by the file that is to keep them. */
const compiledAnew = new Map();
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
  const exports = {};
  compile(name).runInThisContext()(exports, require, dist);
  return exports;
}

function compile(name) {
  const filename = join(dist, name);
  const source = `(function (exports, require, __dirname) { ${readFileSync(filename, 'utf8')}\n})`;
  if (cache === undefined) return new Script(source, { filename });
  const keptIn = join(cache, `${name}-${stateOf(filename)}`);
  const cachedData = readKept(keptIn);
  const script = new Script(source, { filename, cachedData });
  if (cachedData === undefined || script.cachedDataRejected) compiledAnew.set(keptIn, script);
  return script;
}

/** Another one after each change of the file, of which V8 would only see another length, and for each version of Node. */
function stateOf(filename) {
  const { size, ctimeMs } = statSync(filename);
  return `${size}-${ctimeMs}-${process.version}-${process.arch}`;
}

/**
 * The folder, made where it is missing, beside the code and for its owner alone: nobody else can change what runs, and root leaves
 * nothing in a user's folder. Without it, every start compiles anew.
 */
function openCache() {
  const folder = join(dist, '.cache');
  const me = process.getuid?.();
  try {
    if (me === undefined || statSync(dist).uid !== me) return undefined;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(folder);
    return uid === me && (mode & 0o077) === 0 ? folder : undefined;
  } catch {
    return undefined;
  }
}

/** It is kept twice, so that damage shows: V8 looks for none, and would run it. */
function readKept(file) {
  try {
    const twice = readFileSync(file);
    const once = twice.subarray(0, twice.length / 2);
    return once.equals(twice.subarray(once.length)) ? once : undefined;
  } catch {
    return undefined;
  }
}

function keepCompiled() {
  for (const [file, script] of compiledAnew) keep(file, script.createCachedData());
  compiledAnew.clear();
}

/** Where that fails, the next start tries again. */
function keep(file, data) {
  const unfinished = `${file}.${process.pid}`;
  try {
    writeFileSync(unfinished, Buffer.concat([data, data]), { mode: 0o600 });
    renameSync(unfinished, file);
  } catch {
    remove(unfinished);
  }
}

function remove(file) {
  try {
    rmSync(file, { force: true });
  } catch {
    // a folder that can't be written, or a disk that fails
  }
}
