import { expect, test } from 'vitest';
import { openRankd } from '../../bench/daemon.ts';
import { fill, small } from '../../bench/fill.ts';
import { verification } from '../../bench/verification.ts';

test('rankd can use a database filled by the bench: it accepts the secrets, and lists the keys and changes', async () => {
  await using rankd = await openRankd();
  const secrets = fill(rankd, small);
  const { keys } = await rankd.home.json<{ keys: unknown[] }>('key', 'list');
  const { changes } = await rankd.home.json<{ changes: unknown[] }>('history', 'list');
  expect([keys.length, changes.length]).toEqual([1 + small.keys, small.changes]);
  await using server = await rankd.start();
  const answers = secrets.map(async (secret) => {
    const { path, ...request } = verification(secret);
    return (await fetch(server.url + path, { method: 'POST', ...request })).status;
  });
  expect(await Promise.all(answers)).toEqual(secrets.map(() => 200));
  expect(new Set(secrets).size).toBe(small.keys);
});
