// Starts the bundle in dist/ with Node.js's compile cache. Gets Node.js's modules from `process`, because an import
// would evaluate all their exports.
const { mkdirSync, statSync } = process.getBuiltinModule('node:fs');
const { enableCompileCache, getCompileCacheDir } = process.getBuiltinModule('node:module');
const { homedir } = process.getBuiltinModule('node:os');
const { isAbsolute, join } = process.getBuiltinModule('node:path');

// Log rotators send this signal. By default, Node.js would respond by opening a debugger port, through which any user
// of the machine could run code.
process.on('SIGUSR1', () => {});
useCompileCache();
try {
  const { main } = await import('../dist/main.js');
  await main();
} catch (error) {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  process.stderr.write(`error: A part of rankd is missing: ${error.message}.\n`);
  process.stderr.write('try: install rankd again; in a clone: npm ci --include=dev   # also builds it\n');
  process.exitCode = 78;
}

/**
 * Enables the compile cache in a folder of the user's own. Node.js's default folder is shared by all users of the
 * machine, and anyone who can write to the cache can inject code. If the folder is not writable, every start compiles
 * the bundle again.
 */
function useCompileCache() {
  if (process.env.NODE_DISABLE_COMPILE_CACHE || getCompileCacheDir()) return;
  try {
    const home = homedir();
    if (process.getuid && process.getuid() !== statSync(home).uid) return; // sudo can leave HOME unchanged
    const folder = cacheFolder(home, process.env);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    enableCompileCache(folder);
  } catch {
    // no home folder, or it is not writable
  }
}

/** On Windows, `rankd` in LOCALAPPDATA is already the data directory, so the cache needs a different name. */
function cacheFolder(home, { LOCALAPPDATA = '', XDG_CACHE_HOME = '' }) {
  if (process.platform === 'win32' && isAbsolute(LOCALAPPDATA)) return join(LOCALAPPDATA, 'rankd-cache');
  return join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(home, '.cache'), 'rankd');
}
