import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { CopyOfRankd } from './copy-of-rankd.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The code that adds a migration to each engine's list. */
const nextSteps = {
  sqlite: `migrations.push('CREATE TABLE later (id INTEGER)');`,
  postgres: `migrations.push({ sql: 'CREATE TABLE rankd.later (id integer)', livesWith: migrations.length + 1 });`,
};

const withNextStep: Plugin = {
  name: 'next schema',
  setup({ onLoad }) {
    onLoad({ filter: /stores.(sqlite|postgres).schema.migrations\.ts$/ }, async ({ path }) => {
      const step = path.includes('postgres') ? nextSteps.postgres : nextSteps.sqlite;
      return { contents: `${await readFile(path, 'utf8')}\n${step}\n`, loader: 'ts' };
    });
  },
};

/**
 * Builds rankd from this tree with one more migration. A database that it has migrated is too new for this tree's
 * rankd.
 */
export async function buildLaterRankd(): Promise<CopyOfRankd> {
  const copy = new CopyOfRankd({ packages: true });
  await build({
    entryPoints: [join(root, 'src/main.ts')],
    outdir: copy.dist,
    ...{ bundle: true, splitting: true, format: 'esm', platform: 'node', target: 'node22', logLevel: 'error' },
    external: ['better-sqlite3', 'pg-native'],
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    plugins: [withNextStep],
  });
  return copy;
}
