// Puts the Node.js that npm ci brought on the path of npm scripts and of npx. npm links it itself, but npm 10 removes that link again
// together with the packages for other systems, whose command has the same name.
import { existsSync, readFileSync, symlinkSync } from 'node:fs';

const { optionalDependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const packages = new URL('../../node_modules/', import.meta.url);
const link = new URL('.bin/node', packages);

const brought = Object.keys(optionalDependencies).find((name) => existsSync(new URL(`${name}/bin/node`, packages)));
if (brought !== undefined && !existsSync(link)) symlinkSync(`../${brought}/bin/node`, link);
