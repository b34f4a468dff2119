import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { engineOf } from '../../src/stores/engine.ts';
import { createKey } from '../../src/usecases/keys/keys.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { CliHome } from '../support/run-cli.ts';

interface Entries {
  v: number;
  entries: Array<{
    placeId: number;
    keyId: string;
    keyName: string;
    active: boolean;
    note: string;
    addedAt: string;
    outcome?: string;
  }>;
}

test.concurrent('place 0, which an unpublished game sends, is refused with the fix', async () => {
  using home = await homeWithKey();
  expect(await home.here(['whitelist', 'add', '0'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('A game that was never published sends 0: publish it, then use its place id.\n'),
  });
});

async function homeWithKey(): Promise<CliHome> {
  const home = new CliHome();
  await home.here(['key', 'create', 'game']);
  return home;
}

async function places(home: CliHome, ...args: string[]): Promise<number[]> {
  return (await home.json<Entries>('whitelist', 'list', ...args)).entries.map(({ placeId }) => placeId);
}

test.concurrent('added places are listed with key, note and time, and each is reported as added, re-enabled or existing', async () => {
  using home = await homeWithKey();
  const added = await home.here(['whitelist', 'add', '20', '9007199254740991', '20', '--note', 'main game']);
  expect(added).toMatchObject({ code: 0, stdout: 'Place 20: added\nPlace 9007199254740991: added\n' });
  expect(added.stderr).toMatch(/game\.PlaceId.*game\.GameId/);

  await home.here(['whitelist', 'disable', '20']);
  const again = await home.here(['whitelist', 'add', '9007199254740991', '20', '5']);
  expect(again.stdout).toBe('Place 9007199254740991: already there\nPlace 20: re-enabled\nPlace 5: added\n');

  const { v, entries } = await home.json<Entries>('whitelist', 'list');
  expect(v).toBe(1);
  expect(entries).toEqual([
    {
      placeId: 5,
      keyId: expect.stringMatching(/^key_/),
      keyName: 'game',
      active: true,
      note: '',
      addedAt: expect.any(String),
      declaredIn: null,
    },
    expect.objectContaining({ placeId: 20, active: true, note: 'main game' }),
    expect.objectContaining({ placeId: 9007199254740991, note: 'main game' }),
  ]);
  expect(Date.parse(entries[0]?.addedAt ?? '')).toBeGreaterThan(Date.now() - 60_000);
});

test.concurrent('all places of an experience are added at once, even from several pages, and each is named', async () => {
  await using opened = await openCloudHome();
  const { home, roblox } = opened;
  const names = Object.fromEntries(Array.from({ length: 120 }, (_, index) => [index + 1_001, `Place ${index}`]));
  roblox.experiences[98] = names;
  const address = 'https://create.roblox.com/dashboard/creations/experiences/98/overview';
  const added = await home.here(['whitelist', 'add', '5', '--experience', address]);
  expect(added).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Place 5: added\nPlace 1001: added\n/) });
  expect(added.stderr).toContain('Experience 98 has 120 places: Place 0 (1001), Place 1 (1002), ');
  expect(await places(home)).toEqual([1, 5, ...Object.keys(names).map(Number)]);
  expect(roblox.violations()).toEqual([]);
});

test.concurrent('an experience that Roblox does not list adds nothing and prints how to add its places', async () => {
  await using opened = await openCloudHome();
  const { home, roblox } = opened;
  const add = (...args: string[]) => home.here(['whitelist', 'add', '5', '--experience', ...args]);
  for (const status of [401, 403] as const) {
    roblox.faults.add({ operation: 'places', kind: `status ${status}` });
    const refused = await add('98');
    expect(refused).toMatchObject({ code: 5, stdout: '' });
    expect(refused.stderr).toMatch(
      /^error: .* only to its creators.*\ntry: .*Creator Dashboard.*whitelist add ADDRESS/m,
    );
  }
  expect((await add('98')).stderr).toContain('Roblox lists no places for experience 98.');
  roblox.experiences[98] = {};
  expect((await add('98')).code).toBe(3);
  expect((await add('https://www.roblox.com/games/42/Lobby')).code).toBe(2);
  expect(await places(home)).toEqual([1]);
});

test.concurrent('ids from a file or standard input are added to the arguments; comments and blank lines are ignored', async () => {
  using home = await homeWithKey();
  writeFileSync(home.path('places.txt'), '\uFEFF7\r\n\r\n# the old ones\r\n 8 # lobby\r\n7\r\n1');
  const added = await home.here(['whitelist', 'add', '1', '--file', 'places.txt', '--json']);
  expect(added.json<Entries>().entries.map(({ placeId, outcome }) => [placeId, outcome])).toEqual([
    [1, 'added'],
    [7, 'added'],
    [8, 'added'],
  ]);
  expect(await home.here(['whitelist', 'remove', '--file', '-'], { input: '7\n8\n' })).toMatchObject({
    code: 0,
    stdout: 'Place 7: removed\nPlace 8: removed\n',
  });
  expect(await places(home)).toEqual([1]);
});

test.concurrent('all invalid lines of a list are reported at once, and nothing is changed', async () => {
  using home = await homeWithKey();
  const input = '11\nabc\n0\n12\n-3\n1.5\n9007199254740992\n\u001b[31m13';
  const result = await home.here(['whitelist', 'add', '10', '--file', '-'], { input });
  expect(result).toMatchObject({ code: 2, stdout: '' });
  expect(result.stderr).toMatch(
    /^error: .*standard input names a place: line 2 "abc", line 3 "0", line 5 "-3", line 6 "1\.5", line 7 "9007199254740992", line 8 "\uFFFD\[31m13"\. .*\ntry: .*\n$/,
  );
  expect(await places(home)).toEqual([]);
});

test('a list of 20 000 places is added in one transaction, and nothing is added if one line is invalid', {
  timeout: 60_000,
}, async () => {
  using home = await homeWithKey();
  const ids = Array.from({ length: 20_000 }, (_, index) => String(index + 1));
  const wrong = ids.with(11_999, '12 000').join('\n');
  const refused = await home.here(['whitelist', 'add', '--file', '-'], { input: wrong });
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain(
    'Not every line of standard input names a place: line 12000 "12 000". Nothing was changed.',
  );
  expect(await places(home)).toEqual([]);

  const input = ids.join('\n');
  const added = await home.here(['whitelist', 'add', '--file', '-', '-q'], { input });
  expect(added.stdout).toMatch(/^Place 1: added\n[\s\S]*Place 20000: added\n$/);
  expect((await home.here(['whitelist', 'check', '12000'])).code).toBe(0);
  const missing = await home.here(['whitelist', 'remove', '--file', '-'], { input: `${input}\n20001` });
  expect(missing.stderr).toContain('Place 20001 is not on the whitelist');
  expect((await home.here(['whitelist', 'remove', '--file', '-', '-q'], { input })).code).toBe(0);
  expect(await places(home)).toEqual([]);
});

test.concurrent('the first twenty of thousands of invalid lines or missing places are named', async () => {
  using home = await homeWithKey();
  const words = Array.from({ length: 5_000 }, () => 'x').join('\n');
  const refused = await home.here(['whitelist', 'add', '--file', '-'], { input: words });
  expect(refused.stderr).toContain('line 20 "x", and 4980 more. Nothing was changed.');
  const ids = Array.from({ length: 5_000 }, (_, index) => index + 1).join('\n');
  const missing = await home.here(['whitelist', 'remove', '--file', '-'], { input: ids });
  expect(missing.stderr).toContain('Places 1, 2, 3,');
  expect(missing.stderr).toContain('20 and 4980 more are not on the whitelist of key "game"');
  await home.json('whitelist', 'add', '7');
  const removed = await home.here(['whitelist', 'remove', '7', '8', '--if-exists']);
  expect(removed).toMatchObject({ code: 0, stdout: 'Place 7: removed\n' });
  expect((await home.here(['whitelist', 'remove', '7', '--if-exists'])).code).toBe(0);
});

test.concurrent.each([
  ['no id at all', ['add'], '', 2],
  ['a list without ids', ['add', '--file', '-'], '# nothing\n\n', 2],
  ['an argument that is not an id', ['add', '1', 'lobby'], '', 2],
  ['a file that does not exist', ['add', '--file', 'missing.txt'], '', 3],
  ['a directory as the file', ['add', '--file', '.'], '', 2],
  ['an unknown key', ['add', '1', '--key', 'nobody'], '', 3],
  ['a place that is not listed', ['remove', '1'], '', 3],
])('%s is refused with its exit code and two lines', async (_what, args, input, code) => {
  using home = await homeWithKey();
  const result = await home.here(['whitelist', ...args], { input });
  expect(result).toMatchObject({ code, stdout: '' });
  expect(result.stderr).toMatch(/^error: [^\n]+\ntry: [^\n]+\n$/);
  expect(await places(home)).toEqual([]);
});

test.concurrent('places are removed, enabled and disabled all together or not at all', async () => {
  using home = await homeWithKey();
  await home.here(['whitelist', 'add', '1', '2']);
  for (const verb of ['remove', 'disable', 'enable']) {
    const result = await home.here(['whitelist', verb, '1', '404', '405', '2']);
    expect(result.code).toBe(3);
    expect(result.stderr).toMatch(/404, 405/);
  }
  const { entries } = await home.json<Entries>('whitelist', 'list');
  expect(entries.map(({ placeId, active }) => [placeId, active])).toEqual([
    [1, true],
    [2, true],
  ]);
});

test.concurrent('check exits with 0 for yes, and with 5 for missing or disabled places', async () => {
  using home = await homeWithKey();
  await home.here(['whitelist', 'add', '1', '2']);
  await home.here(['whitelist', 'disable', '2']);
  expect(await home.here(['whitelist', 'check', '1'])).toMatchObject({ code: 0, stdout: 'yes\n', stderr: '' });
  const disabled = await home.here(['whitelist', 'check', '2']);
  expect(disabled).toMatchObject({ code: 5, stdout: 'no\n' });
  expect(disabled.stderr).toContain('try: rankd whitelist enable 2 --key game');
  expect(await home.here(['whitelist', 'check', '3', '-q'])).toMatchObject({ code: 5, stdout: 'no\n', stderr: '' });
  const asJson = await home.here(['whitelist', 'check', '2', '--json']);
  expect(asJson).toMatchObject({ code: 5, stderr: '' });
  expect(asJson.json()).toMatchObject({ v: 1, allowed: false, entry: { placeId: 2, active: false, keyName: 'game' } });
  await home.here(['whitelist', 'enable', '2']);
  expect((await home.here(['whitelist', 'check', '2'])).code).toBe(0);
});

test.concurrent('check answers yes for any place if the key needs none, and no if the key is paused or revoked', async () => {
  using home = await homeWithKey();
  await home.here(['whitelist', 'add', '1']);
  await home.here(['key', 'set', 'game', '--any-place']);
  expect(await home.here(['whitelist', 'check', '3'])).toMatchObject({ code: 0, stdout: 'yes\n' });
  await home.here(['key', 'pause', 'game']);
  expect(await home.here(['whitelist', 'check', '3'])).toMatchObject({ code: 5, stdout: 'no\n' });
  await home.here(['key', 'revoke', 'game', '--yes']);
  const revoked = await home.here(['whitelist', 'check', '1', '--key', 'game']);
  expect(revoked).toMatchObject({ code: 5, stdout: 'no\n' });
  expect(revoked.stderr).toMatch(/^Games can't use the key "game": .*revoked.*\.\ntry: rankd key create NAME\n$/);
  await home.here(['key', 'create', 'staff', '--for-discord']);
  const discord = await home.here(['whitelist', 'check', '1', '--key', 'staff']);
  expect(discord.stderr).toContain('Key "staff" is for Discord, so no game can use it.');
  expect(discord.code).toBe(4);
});

test.concurrent('an empty list is reported for the named key, and adding a place to an expired key reports that no game can use the key', async () => {
  using home = await homeWithKey();
  const { stderr } = await home.here(['whitelist', 'list', '--key', 'game']);
  expect(stderr).toContain('No place is whitelisted for this key.\n');
  expect(stderr).not.toContain('try:');
  await home.here(['key', 'create', 'brief', '--expires', '1s']);
  await setTimeout(1100);
  const late = await home.here(['whitelist', 'add', '1', '--key', 'brief']);
  expect(late.stderr).toContain('Key "brief" has expired, so no game can use it.\ntry: rankd key create NAME\n');
});

test.concurrent('with several keys, the key must be named, and each has a separate list; a revoked key gets no places', async () => {
  using home = await homeWithKey();
  await home.here(['key', 'create', 'other']);
  const unnamed = await home.here(['whitelist', 'add', '1']);
  expect(unnamed.code).toBe(2);
  expect(unnamed.stderr).toMatch(/--key game or --key other/);

  await home.here(['whitelist', 'add', '1', '--key', 'game']);
  await home.here(['whitelist', 'add', '2', '--key', 'other']);
  expect(await places(home, '--key', 'other')).toEqual([2]);
  expect(await places(home)).toEqual([1, 2]);

  await home.here(['key', 'revoke', 'other', '-y']);
  expect((await home.here(['whitelist', 'add', '3', '--key', 'other'])).code).toBe(4);
  expect(await places(home)).toEqual([1]);
  await makeExpiredKey(home);
  // Only `game` is neither revoked nor expired, so --key is optional.
  expect((await home.here(['whitelist', 'add', '3'])).code).toBe(0);
});

async function makeExpiredKey({ dataDir }: CliHome): Promise<void> {
  const store = await engineOf({ dataDir, clock: systemClock }).openStore();
  await createKey(
    { store, clock: systemClock },
    { name: 'old', mode: 'live', scopes: ['rank'], expiresAt: 1, by: 'cli:tester@test' },
  );
  await store.close();
}

test.concurrent('a note can neither control the terminal nor forge a line', async () => {
  using home = await homeWithKey();
  await home.here(['whitelist', 'add', '1', '--note', 'a\u001b]0;x\u0007\nPLACE 2']);
  const { stdout } = await home.here(['whitelist', 'list']);
  expect(stdout.split('\n')).toHaveLength(3);
  for (const control of ['\u001b', '\u0007']) expect(stdout).not.toContain(control);
});
