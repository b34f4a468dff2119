// Started by a Node that is too old: the one that npm ci brought takes over; without it, two lines and exit code 78.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

const name = process.platform === 'win32' ? 'node.exe' : 'node';
const ownNode = fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url));
if (existsSync(ownNode)) {
  runWith(ownNode);
} else {
  process.stderr.write(`error: rankd needs Node.js 22.14 or newer; this is ${process.version}.\n`);
  process.stderr.write('try: install the current LTS release from https://nodejs.org, then run rankd again\n');
  process.exitCode = 78;
}

/** Runs this same command on another Node and ends as it ends. The channel tells the child should this process be killed. */
function runWith(node) {
  const child = spawn(node, process.argv.slice(1), { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  process.on('SIGINT', () => {}); // the terminal sends it to both; the child decides
  process.on('SIGUSR1', () => {}); // as in start.js
  child.on('exit', (status, signal) => process.exit(status === null ? 128 + constants.signals[signal] : status));
}
