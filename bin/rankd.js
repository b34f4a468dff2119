#!/usr/bin/env node
// Runtime guard: on an older Node the SQLite addon ends in a segmentation fault, so the version is checked before anything
// else is loaded. Plain JavaScript that old versions can parse; it imports nothing of Node, which every command would wait for.
const [major, minor] = process.versions.node.split('.').map(Number);
const isNewEnough = major > 22 || (major === 22 && minor >= 14);

await import(isNewEnough ? './start.js' : './older-node.js');
