#!/usr/bin/env node
// On an older Node the SQLite addon ends in a segmentation fault, so the version is checked before anything else is loaded.
// Plain JavaScript that old versions can parse; it imports none of Node's modules, which every command would wait for.
import { lowestNode } from './lowest-node.js';

const [major, minor] = process.versions.node.split('.').map(Number);
const [lowestMajor, lowestMinor] = lowestNode.split('.').map(Number);
const isNewEnough = major > lowestMajor || (major === lowestMajor && minor >= lowestMinor);

await import(isNewEnough ? './start.js' : './older-node.js');
