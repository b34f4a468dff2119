import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { DaemonProcess } from '../support/daemon-process.ts';
import { sampleUsers } from '../support/fake-open-cloud/index.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { CliHome } from '../support/run-cli.ts';

test('of two daemons started at the same time on a new data directory, exactly one serves; the other exits with 4', async () => {
  using home = new CliHome();
  const starts = await Promise.allSettled([start(home), start(home)]);
  const [daemon, ...more] = starts.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const [refusal] = starts.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
  await using winner = daemon;
  expect(more).toEqual([]);
  expect(refusal).toContain('"code":"conflict"'); // the code for which rankd exits with 4
  expect((await fetch(`${winner?.url}/readyz`)).status).toBe(200);
  expect((await home.run(['serve', '--port', '0'])).code).toBe(4);
  expect(integrityOf(home)).toBe('ok');
});

test('ten concurrent commands next to a busy daemon all succeed, and lose no data', async () => {
  using home = new CliHome();
  await using daemon = await start(home);
  const secret = await home.createKey();
  const names = Array.from({ length: 10 }, (_, index) => `key-${index}`);
  let isBusy = true;
  const changing = (async () => {
    const statuses = new Set<number>();
    for (let turn = 0; isBusy; turn += 1) {
      statuses.add((await daemon.rank(secret, { newRankId: turn % 2 ? 10 : 20 })).status);
    }
    return [...statuses];
  })();
  const made = await Promise.all(names.map((name) => home.run(['key', 'create', name])));
  isBusy = false;
  expect(made.map(({ code, stderr }) => (code === 0 ? 0 : stderr))).toEqual(names.map(() => 0));
  expect(await changing).toEqual([200]);
  const { keys } = await home.json<{ keys: Array<{ name: string }> }>('key', 'list');
  expect(keys.map(({ name }) => name).sort()).toEqual(['game', ...names]);
  expect(integrityOf(home)).toBe('ok');
});

test('commands and the daemon never write for one member at the same time, and lose no change', async () => {
  await using world = await openCloudHome();
  const { roblox, home, secret } = world;
  const { trainee } = sampleUsers;
  const daemon = await world.startDaemon();
  roblox.latencyMs = 30;
  const games = [10, 20, 50, 20].map((newRankId) => daemon.rank(secret, { newRankId }));
  const shells = [50, 10, 20].map((rank) => home.run(['rank', 'set', String(trainee), String(rank), '--json']));
  expect((await Promise.all(games)).map(({ status }) => status)).toEqual(games.map(() => 200));
  expect((await Promise.all(shells)).map(({ code, stderr }) => (code === 0 ? 0 : stderr))).toEqual(shells.map(() => 0));
  expect(roblox.violations()).toEqual([]);
  const { changes } = await home.json<{ changes: Kept[] }>('history', 'list');
  expect(changes).toHaveLength(games.length + shells.length);
  const story = changes.sort((one, other) => one.finishedAt.localeCompare(other.finishedAt));
  for (const [index, { rolesBefore }] of story.entries()) {
    if (index > 0) expect(rolesBefore).toEqual(story[index - 1]?.rolesAfter);
  }
  expect(story.at(-1)?.rolesAfter).toEqual(expect.arrayContaining(roblox.group.held(trainee) ?? []));
});

function start(home: CliHome): Promise<DaemonProcess> {
  return DaemonProcess.start(home);
}

function integrityOf({ dataDir }: CliHome): unknown {
  const database = new Database(join(dataDir, 'rankd.db'), { readonly: true });
  try {
    return database.pragma('integrity_check', { simple: true });
  } finally {
    database.close();
  }
}

interface Kept {
  rolesBefore: number[];
  rolesAfter: number[];
  finishedAt: string;
}
