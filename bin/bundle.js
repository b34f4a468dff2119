// Loads the bundle, with what V8 compiled of it in an earlier start: of every function that had run by then. Node's own compile
// cache keeps a file as it is compiled before it runs, when most of its functions are not, so each start would compile those anew.
// It imports nothing of Node, as that would evaluate more than is used of it.
const { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } = process.getBuiltinModule('node:fs');
const { createRequire } = process.getBuiltinModule('node:module');
const { join } = process.getBuiltinModule('node:path');
const { Script } = process.getBuiltinModule('node:vm');

const dist = join(import.meta.dirname, '../dist');
const cache = openCache(join(dist, '.cache'));
/** What each file exports. */
const loaded = new Map();
/** By where it is to be kept. */
const compiledAnew = new Map();
const fromPackages = createRequire(join(dist, 'main.cjs'));
const require = Object.assign((id) => (id.startsWith('./') ? load(id.slice(2)) : fromPackages(id)), {
  resolve: fromPackages.resolve,
});

// A daemon may end without a warning, or so late that V8 has dropped what only the start needed.
setTimeout(keepCompiled, 2_000).unref();
process.on('exit', keepCompiled);
await load('main.cjs').main();

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
  const kept = cache && `${cache}/${name}-${stateOf(filename)}`;
  const source = `(function (exports, require, __dirname) { ${readFileSync(filename, 'utf8')}\n})`;
  const cachedData = kept && readIfThere(kept);
  const script = new Script(source, { filename, cachedData });
  if (kept && (cachedData === undefined || script.cachedDataRejected)) compiledAnew.set(kept, script);
  return script;
}

/** Another one for each other content of the file, and for each other version of Node. */
function stateOf(filename) {
  const { size, ctimeMs } = statSync(filename);
  return `${size}-${ctimeMs}-${process.version}-${process.arch}`;
}

/**
 * The folder, made where it is missing, beside the code and for its owner alone: nobody else can change what runs, and root leaves
 * nothing in a user's folder.
 */
function openCache(folder) {
  const me = process.getuid?.();
  if (me === undefined || statSync(dist).uid !== me) return undefined;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(folder);
    return uid === me && (mode & 0o077) === 0 ? folder : undefined;
  } catch {
    return undefined; // a folder that can't be written: every start compiles anew
  }
}

function readIfThere(file) {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}

function keepCompiled() {
  for (const [file, script] of compiledAnew) keep(file, script.createCachedData());
  compiledAnew.clear();
}

/** All of it or nothing, also after a power cut: V8 looks for no damage in it. */
function keep(file, data) {
  const unfinished = `${file}.${process.pid}`;
  try {
    writeFileSync(unfinished, data, { flag: 'wx', mode: 0o600, flush: true });
    renameSync(unfinished, file);
  } catch {
    rmSync(unfinished, { force: true }); // the next start tries again
  }
}
