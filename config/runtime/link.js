// Puts the Node.js that npm ci brought on the path of npm scripts and of npx. npm links it itself, but npm 10 removes that link again
// together with the packages for other systems, whose command has the same name. On Windows npm writes scripts of the shell, each of
// which takes the node.exe that lies beside it; it is there as a second name of the file, as a link would need an administrator.
import { existsSync, linkSync, readFileSync, symlinkSync } from 'node:fs';

const { optionalDependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const packages = new URL('../../node_modules/', import.meta.url);
const name = process.platform === 'win32' ? 'node.exe' : 'node';
const link = new URL(`.bin/${name}`, packages);

const brought = Object.keys(optionalDependencies).find((folder) =>
  existsSync(new URL(`${folder}/bin/${name}`, packages)),
);
if (brought !== undefined && !existsSync(link)) {
  if (name === 'node.exe') linkSync(new URL(`${brought}/bin/${name}`, packages), link);
  else symlinkSync(`../${brought}/bin/${name}`, link);
}
