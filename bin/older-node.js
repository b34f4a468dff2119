// Loaded if Node.js is too old. In a clone, runs rankd on the Node.js that `npm ci` installed; otherwise, prints an
// error and exits with code 78.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { lowestNode } from './lowest-node.js';

const name = process.platform === 'win32' ? 'node.exe' : 'node';
const ownNode = fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url));
if (existsSync(ownNode)) runWith(ownNode);
else if (existsSync(new URL('../package-lock.json', import.meta.url)))
  refuse('npm ci --include=dev   # installs one in this clone');
else refuse('install the current LTS release from https://nodejs.org, then run rankd again');

function refuse(fix) {
  process.stderr.write(`error: rankd needs Node.js ${lowestNode} or newer; this is ${process.version}.\ntry: ${fix}\n`);
  process.exitCode = 78;
}

/**
 * Runs the same command on a different Node.js and exits with its code. Over the IPC channel, the child notices if this
 * process is killed.
 */
function runWith(node) {
  const child = spawn(node, process.argv.slice(1), { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  process.on('SIGINT', () => {}); // the terminal sends it to both processes; the child handles it
  process.on('SIGUSR1', () => {}); // for the reason in start.js
  child.on('error', ({ code }) => refuse(`npm ci --include=dev   # ${node} can't be started (${code})`));
  child.on('exit', (status, signal) => process.exit(status === null ? 128 + constants.signals[signal] : status));
}
