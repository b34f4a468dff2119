// Keeps what V8 compiled of the bundle: of every function that has run by then. Node's own compile cache keeps a file as it is compiled
// before it runs, when most of its functions are not, so each start would compile those anew.
const { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } = process.getBuiltinModule('node:fs');
const { join } = process.getBuiltinModule('node:path');
const { Script } = process.getBuiltinModule('node:vm');

const dist = join(import.meta.dirname, '../dist');
const cache = openCache();
/** Scripts that the cache did not have, by the file that is to keep them. */
const compiledAnew = new Map();

/** The script of `code`, which is made of a file in dist. */
export function compile(name, code) {
  const filename = join(dist, name);
  if (cache === undefined) return new Script(code, { filename });
  const keptIn = join(cache, `${name}-${stateOf(filename)}`);
  const cachedData = readKept(keptIn);
  const script = new Script(code, { filename, cachedData });
  if (cachedData === undefined || script.cachedDataRejected) compiledAnew.set(keptIn, script);
  return script;
}

/** Where that fails, the next start tries again. */
export function keepCompiled() {
  for (const [file, script] of compiledAnew) keep(file, script.createCachedData());
  compiledAnew.clear();
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
