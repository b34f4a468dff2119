import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { pages } from '../support/readme-commands.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
/** Paths on a page may be relative to these folders. */
const folders = (page: string) => ['', 'src/', page.replace(/[^/]+$/, '')];

function namesOf(page: string) {
  const text = read(page);
  return {
    paths: [
      ...(text.match(/(?<![\w./-])(?:src|test|docs|bench|bin|config)\/[\w./-]*\w/g) ?? []),
      ...(text.match(/(?<![\w./:-])(?:[\w-]+\/)+[\w.-]+\.[jt]s\b/g) ?? []),
    ],
    links: [...text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link = '']) => new URL(link, new URL(page, root))),
    symbols: [...text.matchAll(/`(\w+)`\s+in\s+`(\w+\/[^`]+)`/g)].map(([, name = '', file = '']) => ({ name, file })),
    excerpts: [...text.matchAll(/```ts\n\s*\/\/ (\S+\.ts)\n(.+?)```/gs)].map(([, file = '', code = '']) => ({
      file,
      code,
    })),
  };
}

test.each(pages)('%s names only existing files and folders', (page) => {
  const missing = namesOf(page).paths.filter(
    (path) => !folders(page).some((folder) => existsSync(new URL(folder + path, root))),
  );
  expect(missing).toEqual([]);
});

test.each(pages)('%s links only to existing files and headings', (page) => {
  for (const { href, hash } of namesOf(page).links) {
    const file = new URL(href.replace(hash, ''));
    expect(existsSync(file), href).toBe(true);
    if (hash !== '') expect(anchorsOf(readFileSync(file, 'utf8')), href).toContain(hash);
  }
});

test.each(pages)('the files that %s mentions have the described content', (page) => {
  const { symbols, excerpts } = namesOf(page);
  for (const { name, file } of symbols) expect(read(file), `${name} in ${file}`).toMatch(new RegExp(`\\b${name}\\b`));
  for (const { file, code } of excerpts) {
    const lines = code.split('\n').map((line) => line.trim());
    const kept = new Set(
      read(file)
        .split('\n')
        .map((line) => line.trim()),
    );
    expect(
      lines.filter((line) => line !== '…' && !kept.has(line)),
      `the excerpt of ${file}`,
    ).toEqual([]);
  }
});

test('the guide to a store names every part of the port', () => {
  const ports = readdirSync(new URL('src/ports/', root)).map((name) => read(`src/ports/${name}`));
  const parts = ports.join().match(/(?<=^export interface )(\w+Store|StoreOperations|StoreEngine)(?= )/gm) ?? [];
  const guide = read('docs/adding-a-store.md');
  expect(parts.filter((part) => !guide.includes(`\`${part}\``))).toEqual([]);
});

test('the page on test helpers names every helper, and no removed one', () => {
  const helpers = readdirSync(new URL('test/support/', root)).filter((name) => !/\.test\.ts$|\.md$|^rankd$/.test(name));
  const named = read('test/support/README.md').match(/`[\w./-]+(?:\.ts|\/)`/g) ?? [];
  const own = new Set(named.map((name) => name.replaceAll(/[`/]/g, '')).filter((name) => !name.includes('.test.')));
  expect([...own].filter((name) => !/^(src|docs|test|samples\.ts)/.test(name)).sort()).toEqual(helpers.sort());
});

function anchorsOf(text: string): string[] {
  const headings = text.match(/^#+ .+$/gm) ?? [];
  return headings.map(
    (line) =>
      `#${line
        .replace(/^#+ /, '')
        .toLowerCase()
        .replaceAll(/[^\w -]/g, '')
        .replaceAll(' ', '-')}`,
  );
}
