// The first step of `npm ci` in a clone, before the build. It stops if npm left out the packages that build rankd.
// Otherwise it puts the Node.js that npm ci brought on the path of npm scripts and of npx. npm links it itself, but npm
// 10 removes that link again together with the packages for other systems, whose command has the same name. On Windows
// npm writes shell scripts, each of which runs the node.exe in its own folder; that is a hard link, because a symbolic
// one would need an administrator.
import { existsSync, linkSync, readFileSync, rmSync, symlinkSync } from 'node:fs';

const { optionalDependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const packages = new URL('../../node_modules/', import.meta.url);
const name = process.platform === 'win32' ? 'node.exe' : 'node';
const link = new URL(`.bin/${name}`, packages);

if (!existsSync(new URL('tsup/', packages))) {
  process.stderr.write('error: npm left out the packages that build rankd: NODE_ENV is production, or omit is dev.\n');
  process.stderr.write('try: npm ci --include=dev\n');
  process.exit(1);
}
const brought = Object.keys(optionalDependencies).find((folder) =>
  existsSync(new URL(`${folder}/bin/${name}`, packages)),
);
if (brought !== undefined) {
  // 67 MB for compiling addons, and rankd compiles none
  rmSync(new URL(`${brought}/include`, packages), { recursive: true, force: true });
}
if (brought !== undefined && !existsSync(link)) {
  if (name === 'node.exe') linkSync(new URL(`${brought}/bin/${name}`, packages), link);
  else symlinkSync(`../${brought}/bin/${name}`, link);
}
