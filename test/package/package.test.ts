import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { installPackage } from '../support/installed-package.ts';
import { createPostgresDatabase } from '../support/postgres-database.ts';
import { pagesToType } from '../support/readme-commands.ts';
import { TempDir } from '../support/temp-dir.ts';
import { RankdByHand } from '../tools/rankd-by-hand.ts';
import pinned from './package.json' with { type: 'json' };

const folder = new TempDir();
let script = '';
beforeAll(() => {
  script = installPackage(folder.path);
  return () => folder[Symbol.dispose]();
});

const oldest = readdirSync(new URL('node_modules/', import.meta.url)).find((name) => name.startsWith('node-'));
const nodes = [
  ...(oldest === undefined ? [] : [fileURLToPath(new URL(`node_modules/${oldest}/bin/node`, import.meta.url))]),
  process.execPath,
];

test('the oldest Node that the package is tested on is the oldest that it accepts', async () => {
  const { lowestNode } = await import(new URL('../../bin/lowest-node.js', import.meta.url).href);
  expect(new Set(Object.values(pinned.optionalDependencies))).toEqual(new Set([`${lowestNode}.0`]));
  expect(readFileSync(new URL('../../README.md', import.meta.url), 'utf8')).toContain(`Node.js ${lowestNode} or newer`);
  expect(oldest === undefined && process.platform === 'linux').toBe(false);
});

describe.each(nodes)('the installed package under %s', (node) => {
  test('can be set up for a real group, changes a rank there, passes doctor, shows its page and stops', async () => {
    const [init = '', , rank = ''] = pagesToType.goLive();
    const [, groupId] = /--group (\d+)/.exec(init) ?? [];
    const roblox = await startFakeOpenCloud({ groupId: Number(groupId) });
    const env = {
      RANKD_PLATFORM_BASE_URL: roblox.baseUrl,
      RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl,
      RANKD_PLATFORM_USERS_BASE_URL: roblox.usersBaseUrl,
    };
    const rankd = await newHome(node, env);
    try {
      writeFileSync(rankd.path('roblox.key'), roblox.apiKey, { mode: 0o600 });
      expect(await rankd.run('rankd --version')).toBe(`${manifest.version}\n`);
      await rankd.run(init);
      await rankd.serve();
      await rankd.request(rank);
      await rankd.run('rankd doctor', { expected: /\bok +group\b/ });
      const link = /http:\S+/.exec(await rankd.run('rankd dashboard'))?.[0] ?? '';
      expect((await fetch(link)).status).toBe(200);
    } finally {
      await rankd.stop();
      await roblox.close();
    }
  });

  test('never creates its socket outside a data directory whose path is too long for one', async () => {
    const rankd = await newHome(node, {});
    const dataDir = join(rankd.path('d'.repeat(90)), 'e'.repeat(90));
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const before = readdirSync(rankd.path('.'));
    await rankd.serve('--data-dir', dataDir);
    try {
      expect(readdirSync(rankd.path('.'))).toEqual(before);
      await rankd.run(`rankd status --data-dir ${dataDir}`, { expected: /running/ });
    } finally {
      await rankd.stop();
    }
  });

  test('creates a key on PostgreSQL, whitelists a place, changes a rank and stops', async () => {
    await using database = await createPostgresDatabase('empty');
    const rankd = await newHome(node, { RANKD_STORE_URL: database.url });
    await rankd.serve();
    try {
      for (const line of pagesToType.trial().map((typed) => typed.replace('npx ', ''))) {
        await (line.startsWith('curl') ? rankd.request(line) : rankd.run(line));
      }
    } finally {
      await rankd.stop();
    }
  });
});

test('every page that rankd mentions is in the package', () => {
  const installed = join(script, '../..');
  const dist = readdirSync(join(installed, 'dist'), { recursive: true, encoding: 'utf8' });
  const texts = dist.filter((name) => /\.(js|luau|yaml)$/.test(name)).map((name) => join(installed, 'dist', name));
  const mentioned = new Set(
    texts.flatMap((file) => readFileSync(file, 'utf8').match(/(?<!!)\bdocs\/[\w-]+\.md\b/g) ?? []),
  );
  expect(mentioned).toContain('docs/hosting.md');
  expect([...mentioned].filter((page) => !existsSync(join(installed, page)))).toEqual([]);
});

test('the start file for a panel that docs/hosting.md names is in the package', () => {
  const [, file = ''] =
    /`(\.\/node_modules\/rankd\/\S+)`/.exec(readFileSync(new URL('../../docs/hosting.md', import.meta.url), 'utf8')) ??
    [];
  expect(file).toMatch(/panel\.js$/);
  expect(existsSync(join(script, '../../../..', file))).toBe(true);
});

let homes = 0;
/** All homes share Node.js's compile cache. */
function newHome(node: string, env: Record<string, string>): Promise<RankdByHand> {
  homes += 1;
  const home = join(folder.path, `home-${homes}`);
  mkdirSync(home);
  const compiled = { NODE_COMPILE_CACHE: join(folder.path, 'compiled') };
  return RankdByHand.open({ program: { node, script }, folder: home, env: { ...compiled, ...env } });
}
