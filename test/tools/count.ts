import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

/** `npm run count`: counts the TypeScript files in `src` and their lines, by folder. */

const root = resolve(import.meta.dirname, '..', '..');

export interface SourceFile {
  /** Relative to the repository's root. */
  path: string;
  lines: number;
  importers: string[];
}

export function sourceFiles(): SourceFile[] {
  const paths = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => join('src', path));
  const texts = new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
  const importers = new Map<string, string[]>();
  for (const [path, text] of texts) {
    for (const imported of new Set(importsOf(path, text))) {
      importers.set(imported, [...(importers.get(imported) ?? []), path]);
    }
  }
  return [...texts].map(([path, text]) => ({
    path,
    lines: text.split('\n').length - 1,
    importers: importers.get(path) ?? [],
  }));
}

function importsOf(path: string, text: string): string[] {
  return [...text.matchAll(/(?:\bfrom |\bimport\(|^import )'(\.[^']+)'/gm)].map(([, imported = '']) =>
    relative(root, resolve(root, dirname(path), imported)),
  );
}

/** Returns the files that are small enough to be merged into the only file that imports them. */
export function fragments(files: readonly SourceFile[]): SourceFile[] {
  return files.filter(({ lines, importers }) => lines < 30 && importers.length === 1);
}

if (process.argv[1] === import.meta.filename) {
  const files = sourceFiles();
  const rooms = Map.groupBy(
    files,
    ({ path }) => path.split('/').slice(1, -1).slice(0, depthOf(path)).join('/') || '(root)',
  );
  const rows = [...rooms].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([room, own]) => rowOf(room, own));
  process.stdout.write(`${[rowOf('src', files), ...rows].join('\n')}\n`);
}

function depthOf(path: string): number {
  return /^src\/(dashboard|stores)\//.test(path) ? 2 : 1;
}

function rowOf(name: string, files: readonly SourceFile[]): string {
  const lines = files.reduce((sum, file) => sum + file.lines, 0);
  return `${name.padEnd(20)} ${String(files.length).padStart(4)} files ${String(lines).padStart(6)} lines`;
}
