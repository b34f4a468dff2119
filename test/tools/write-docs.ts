import { writeFileSync } from 'node:fs';
import { readPage, withPart, writtenParts } from '../support/written-pages.ts';

/** `npm run docs`: writes the generated parts of the pages, and prints the names of changed pages. */
for (const [page, parts] of Map.groupBy(writtenParts, (part) => part.page)) {
  const before = readPage(page);
  const after = parts.reduce(withPart, before);
  if (after === before) continue;
  writeFileSync(new URL(`../../${page}`, import.meta.url), after);
  process.stdout.write(`${page}\n`);
}
