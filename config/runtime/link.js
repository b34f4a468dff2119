// The first step of the `prepare` script, which `npm ci` runs in a clone. Fails if npm omitted the packages that build
// rankd. Otherwise, puts a link to the Node.js that npm installed into node_modules/.bin, where npm scripts and npx
// find it. npm 10 deletes its own link when it removes the packages for other systems, whose command has the same name.
// On Windows, the command scripts that npm creates run the node.exe in their own folder; it is a hard link, because a
// symbolic link would require administrator rights.
import { existsSync, linkSync, readFileSync, rmSync, symlinkSync } from 'node:fs';

const { optionalDependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
const packages = new URL('../../node_modules/', import.meta.url);
const name = process.platform === 'win32' ? 'node.exe' : 'node';
const link = new URL(`.bin/${name}`, packages);

if (!existsSync(new URL('tsup/', packages))) {
  process.stderr.write(
    'error: npm omitted the packages that build rankd, because NODE_ENV is production or omit is dev.\n',
  );
  process.stderr.write('try: npm ci --include=dev\n');
  process.exit(1);
}
const installed = Object.keys(optionalDependencies).find((folder) =>
  existsSync(new URL(`${folder}/bin/${name}`, packages)),
);
if (installed !== undefined) {
  // 67 MB of headers for compiling addons, which rankd does not need
  rmSync(new URL(`${installed}/include`, packages), { recursive: true, force: true });
}
if (installed !== undefined && !existsSync(link)) {
  if (name === 'node.exe') linkSync(new URL(`${installed}/bin/${name}`, packages), link);
  else symlinkSync(`../${installed}/bin/${name}`, link);
}
