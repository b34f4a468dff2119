#!/usr/bin/env node
// Checks the Node.js version before loading anything else, because the SQLite addon crashes on older versions. Those
// versions must be able to parse this file. It must not import any of Node.js's modules, because that would slow down
// every command.
import { lowestNode } from './lowest-node.js';

const [major, minor] = process.versions.node.split('.').map(Number);
const [lowestMajor, lowestMinor] = lowestNode.split('.').map(Number);
const isNewEnough = major > lowestMajor || (major === lowestMajor && minor >= lowestMinor);

await import(isNewEnough ? './start.js' : './older-node.js');
