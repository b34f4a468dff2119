import { createHash } from 'node:crypto';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import './pictured-user.ts';

/** Preloaded for recordings: fixes the user, the time and the random numbers, to make the output reproducible. */
const require = createRequire(import.meta.url);
const crypto = require('node:crypto') as typeof import('node:crypto');
const { RECORDING_SEED: seed = '', RECORDING_NOW: now = '0' } = process.env;

Date.now = () => Number(now);

let drawn = 0;
Math.random = () => createHash('sha256').update(`${seed} ${drawn++}`).digest().readUInt32BE(0) / 2 ** 32;
crypto.randomInt = ((below: number) => Math.floor(Math.random() * below)) as typeof crypto.randomInt;
syncBuiltinESMExports();
