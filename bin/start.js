// Starts the bundle in dist/ with the compile cache of an earlier start.
// It takes Node's modules from `process`, because an import would evaluate all their exports.
const { mkdirSync, statSync } = process.getBuiltinModule('node:fs');
const { enableCompileCache, getCompileCacheDir } = process.getBuiltinModule('node:module');
const { homedir } = process.getBuiltinModule('node:os');
const { isAbsolute, join } = process.getBuiltinModule('node:path');

// Node.js would open a debugger for this signal, which log rotators send: any user of the machine could run code through it.
process.on('SIGUSR1', () => {});
keepCompiled();
try {
  const { main } = await import('../dist/main.js');
  await main();
} catch (error) {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  process.stderr.write(`error: A part of rankd is missing: ${error.message}.\n`);
  process.stderr.write('try: install rankd again; in a clone: npm ci --include=dev, which also builds it\n');
  process.exitCode = 78;
}

/**
 * A user who can write the compile cache decides which code runs, so it is in the user's own cache folder rather than
 * Node's default, which all users of a machine share. NODE_COMPILE_CACHE names another folder. If none can be written,
 * each start compiles again.
 */
function keepCompiled() {
  if (process.env.NODE_DISABLE_COMPILE_CACHE || getCompileCacheDir()) return;
  try {
    const home = homedir();
    if (process.getuid && process.getuid() !== statSync(home).uid) return; // sudo may not change HOME
    const folder = cacheFolder(home, process.env);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    enableCompileCache(folder);
  } catch {
    // There is no home, or it can't be written.
  }
}

/** On Windows, `rankd` in that folder is the data directory. */
function cacheFolder(home, { LOCALAPPDATA = '', XDG_CACHE_HOME = '' }) {
  if (process.platform === 'win32' && isAbsolute(LOCALAPPDATA)) return join(LOCALAPPDATA, 'rankd-cache');
  return join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(home, '.cache'), 'rankd');
}
