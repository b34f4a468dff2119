#!/usr/bin/env node
// Runtime guard: on an older Node the SQLite addon ends in a segmentation fault, so the version is checked before anything
// else is loaded. Plain JavaScript that old versions can parse; it imports nothing of Node, which every command would wait for.
const [major, minor] = process.versions.node.split('.').map(Number);
const isNewEnough = major > 22 || (major === 22 && minor >= 14);

if (isNewEnough) keepWhatIsCompiled(`${import.meta.dirname}/../dist`);
await import(isNewEnough ? '../dist/main.js' : './older-node.js');

/** Beside the code and for its owner alone: nobody else can change what runs, and root leaves nothing in a user's folder. */
function keepWhatIsCompiled(folder) {
  const { mkdirSync, statSync } = process.getBuiltinModule('node:fs');
  const me = process.getuid?.();
  if (me === undefined || statSync(folder, { throwIfNoEntry: false })?.uid !== me) return;
  const cache = `${folder}/.cache`;
  try {
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(cache);
    if (uid === me && (mode & 0o077) === 0) process.getBuiltinModule('node:module').enableCompileCache(cache);
  } catch {
    // A folder that can't be written: every start compiles anew.
  }
}
