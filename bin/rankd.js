#!/usr/bin/env node
// Checks the version before it loads anything else, because the SQLite addon crashes on an older Node.js.
// Old versions must be able to parse this file. It imports no Node.js module, which would slow down every command.
import { lowestNode } from './lowest-node.js';

const [major, minor] = process.versions.node.split('.').map(Number);
const [lowestMajor, lowestMinor] = lowestNode.split('.').map(Number);
const isNewEnough = major > lowestMajor || (major === lowestMajor && minor >= lowestMinor);

await import(isNewEnough ? './start.js' : './older-node.js');
