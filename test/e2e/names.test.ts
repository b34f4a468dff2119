import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { sampleRoles, sampleUsers } from '../support/open-cloud-app.ts';
import { openCloudHome } from '../support/open-cloud-home.ts';
import { CliHome } from '../support/run-cli.ts';

describe('a user by name', () => {
  test('is looked up in every user argument, and the result is shown', async () => {
    await using system = await openCloudHome();
    const { home, roblox } = system;
    const set = await home.here(['rank', 'set', '@newcomer', 'officer']);
    expect([set.code, set.stdout]).toEqual([0, 'Newcomer (1001) is now Officer (rank 20), was Trainee (rank 10).\n']);
    expect(set.stderr).toContain(
      `Newcomer is user 1001.\n"officer" is Officer (rank 20), role ${sampleRoles.officer}.\n`,
    );
    expect(roblox.group.held(sampleUsers.trainee)).toContain(sampleRoles.officer);
    const by = await home.json(
      'rank',
      'test',
      'https://www.roblox.com/users/1001/profile',
      'Captain',
      '--ranker',
      'RankBot',
    );
    expect(by).toMatchObject({
      allowed: true,
      resolved: [
        { asked: 'RankBot', userId: sampleUsers.actor, name: 'RankBot' },
        { asked: 'Captain', roleId: sampleRoles.captain, name: 'Captain', rank: 50 },
      ],
    });
    expect(await home.json('rank', 'show', 'NEWCOMER')).toMatchObject({ member: { userId: 1001, rank: 20 } });
    const listed = await home.json<{ changes: unknown[] }>('history', 'list', '--user', 'Newcomer');
    expect(listed.changes).toMatchObject([{ rankeeId: 1001, rankeeName: 'Newcomer', newRankId: 20 }]);
    expect(await home.json('forget', 'Newcomer', '-y')).toMatchObject({ resolved: [{ userId: 1001 }] });
    expect(roblox.violations()).toEqual([]);
  });

  test('is refused if it is a previous name or unknown; nothing is changed', async () => {
    await using system = await openCloudHome();
    const { home, roblox } = system;
    roblox.expectNoWrites();
    const renamed = await home.here(['rank', 'set', '@OldNewcomer', '20']);
    expect([renamed.code, renamed.stderr]).toEqual([
      4,
      'error: Newcomer (1001) used to be called OldNewcomer: use 1001 or @Newcomer.\ntry: check on Roblox which user you mean, then use 1001 or @Newcomer\n',
    ]);
    const unknown = await home.here(['rank', 'promote', 'Nobody_at_all', '--json']);
    expect([unknown.code, unknown.json()]).toMatchObject([3, { code: 'user_not_found' }]);
    expect(roblox.violations()).toEqual([]);
  });

  test('is found without the public lookup once the history has it and Roblox confirms that it is current', async () => {
    await using system = await openCloudHome();
    const { home, roblox } = system;
    const show = (name: string) => home.here(['rank', 'show', name]);
    await home.json('rank', 'set', 'Newcomer', '20');
    roblox.faults.add({ operation: 'userNames', kind: 'status 401', times: 100 });
    const lookUpCount = roblox.journal.requests('userNames').length;
    expect((await show('newcomer')).stderr).toContain('Newcomer is user 1001.');
    expect(roblox.journal.requests('userNames')).toHaveLength(lookUpCount);

    const ended = await show('Builder');
    expect([ended.code, ended.stderr]).toEqual([
      5,
      'error: Roblox no longer looks up user names without a login. Send the user id.\ntry: give the user id, the number in the address of the profile page\n',
    ]);
    for (const user of roblox.users) if (user.id === 1001) user.name = 'Renamed';
    roblox.users.push({ id: 9001, name: 'Newcomer' });
    expect((await show('Newcomer')).stderr).toContain('no longer looks up'); // another user now has the name
    roblox.faults.clear();
    expect((await show('Newcomer')).stderr).toContain('Newcomer is user 9001.');
  });

  test.each(['Al', 'B\u043eb', 'Bob Ross', 'a'.repeat(21), '@', 'https://www.roblox.com/games/1/x', '-1001'])(
    '%j cannot be a user name and is not looked up',
    async (name) => {
      using home = new CliHome();
      const { code, stderr } = await home.here(['rank', 'show', name]);
      expect([code, stderr]).toEqual([2, expect.stringContaining('It must be a user id, a user name (3 to 20')]);
    },
  );

  test('is read as an id if it has only digits and no @', async () => {
    await using system = await openCloudHome();
    system.roblox.users.push({ id: sampleUsers.officer, name: '1001' });
    expect(await system.home.json('rank', 'show', '@1001')).toMatchObject({ member: { userId: sampleUsers.officer } });
    expect(await system.home.json('rank', 'show', '1001')).toMatchObject({ member: { userId: 1001 } });
  });

  test('can also be used on the simulated group', async () => {
    using home = new CliHome();
    const { stdout } = await home.here(['rank', 'set', 'Newcomer', 'Officer']);
    expect(stdout).toMatch(/^Newcomer \(1001\) is now Officer/);
  });

  test('is completed by the shell once it has been used', async () => {
    using home = new CliHome();
    const offered = async (current: string) =>
      (await home.here(['__complete', 'rank', 'set', `:${current}`])).stdout.replaceAll(/\t|\n$/g, '').split('\n');
    expect(await offered('new')).toEqual(['']);
    await home.json('rank', 'set', '@newcomer', 'Officer');
    expect(await offered('new')).toEqual(['Newcomer']);
    expect(await offered('@N')).toEqual(['@Newcomer']);
    expect(await offered('N%')).toEqual(['']);
  });
});

describe('a role by name', () => {
  test('is refused with a suggestion and the list of roles if it is unknown', async () => {
    using home = new CliHome();
    const { code, stderr } = await home.here(['rank', 'set', '1001', 'Offiser']);
    expect([code, stderr]).toEqual([
      5,
      expect.stringMatching(
        /error: The group has no role "Offiser"\. Did you mean Officer \(rank 20\)\? Choose one of/,
      ),
    ]);
  });

  test('is found without its badge, by its words, and quoted with spaces; an ambiguous one lists both matches', async () => {
    await using system = await openCloudHome();
    const { group } = system.roblox;
    for (const [index, name] of ['Sergeant Major', '[O-1] Officer Cadet', '🔰 | Recruiter', 'Captain ⭐️'].entries())
      group.roles.push({ id: 77_000_001 + index, name, rank: 30 + index });
    for (const [typed, found] of [
      ['sergeant major', 'Sergeant Major'],
      ['SergeantMajor', 'Sergeant Major'],
      ['o1 officer cadet', '[O-1] Officer Cadet'],
      ['cadet', '[O-1] Officer Cadet'],
      ['recruiter', '🔰 | Recruiter'],
    ] as const) {
      const { stdout, stderr } = await system.home.here(['rank', 'set', '1001', typed]);
      expect(stdout, stderr).toContain(found);
    }
    const both = await system.home.here(['rank', 'set', '1001', 'captain!']);
    expect([both.code, both.stderr]).toEqual([5, expect.stringMatching(/\(Captain ⭐️\), \d+ \(Captain\)/)]);
  });

  test("bounds a key by the role's rank, and the output shows it", async () => {
    using home = new CliHome();
    const made = await home.json('key', 'create', 'quiz', '--max-rank', 'captain', '--min-rank', '10');
    expect(made).toMatchObject({ key: { maxRank: 50, minRank: 10 }, resolved: [{ asked: 'captain', rank: 50 }] });
    expect(await home.json('key', 'set', 'quiz', '--max-rank', 'Officer')).toMatchObject({ key: { maxRank: 20 } });
    expect((await home.here(['key', 'set', 'quiz', '--max-rank', 'Astronaut'])).code).toBe(5);
  });

  test('is completed by the shell once the roles have been read', async () => {
    using home = new CliHome();
    expect((await home.here(['__complete', 'rank', 'set', '1001', ':'])).stdout).toBe('');
    await home.json('group', 'roles');
    const offered = await home.here(['__complete', 'rank', 'set', '1001', ':']);
    expect(offered.stdout).toMatch(
      /^Recruit\tRecruit, rank 1\nMember\tMember, rank 1\nTrainee\tTrainee, rank 10\nOfficer\t/,
    );
    expect((await home.here(['__complete', 'key', 'set', '--max-rank', ':Cap'])).stdout).toBe(
      'Captain\tCaptain, rank 50\n',
    );
    expect((await home.here(['__complete', 'rank', 'set', '1001', ':cap'])).stdout).toMatch(/^Captain\t/);
  });

  test('is completed for the served group, even after a simulated group with the same names was used', async () => {
    await using system = await openCloudHome();
    const { home } = system;
    await home.here(['group', 'roles'], { env: { RANKD_PLATFORM_KIND: 'simulated' } });
    await system.serve();
    await home.json('group', 'roles');
    expect((await home.here(['__complete', 'rank', 'set', '1001', ':Off'])).stdout).toBe('Officer\tOfficer, rank 20\n');
  });
});

describe('a pasted address', () => {
  test('of a game means its place', async () => {
    using home = new CliHome();
    await home.json('key', 'create', 'game');
    const urls = ['https://www.roblox.com/games/920587237/Adopt-Me', 'https://www.roblox.com/de/games/4242?x=1#about'];
    writeFileSync(
      home.path('places.txt'),
      'https://create.roblox.com/dashboard/creations/experiences/7/places/88/configure\n',
    );
    const { entries } = await home.json<{ entries: Array<{ placeId: number }> }>(
      'whitelist',
      'add',
      ...urls,
      '--file',
      'places.txt',
    );
    expect(entries.map(({ placeId }) => placeId)).toEqual([920587237, 4242, 88]);
    for (const other of ['https://roblox.com.evil.example/games/1', 'https://www.roblox.com/groups/5/x']) {
      expect((await home.here(['whitelist', 'add', other])).code).toBe(2);
    }
  });

  test('of an experience is refused, because games send the place id', async () => {
    using home = new CliHome();
    await home.json('key', 'create', 'game');
    const address = 'https://create.roblox.com/dashboard/creations/experiences/9876543210/overview';
    for (const [args, input] of [
      [[address], ''],
      [['--file', '-'], `${address}\n`],
    ] as const) {
      const { code, stderr } = await home.here(['whitelist', 'add', ...args], { input });
      expect([code, stderr]).toEqual([2, expect.stringContaining('games send a place id (game.PlaceId)')]);
    }
  });

  test('of a group means the group', async () => {
    await using system = await openCloudHome();
    const { home, roblox } = system;
    const env = { RANKD_PLATFORM_BASE_URL: roblox.baseUrl, RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl };
    const address = `https://www.roblox.com/communities/${roblox.groupId}/My-Group#!/about`;
    const made = await home.here(
      ['init', '--group', address, '--credential-file', 'roblox.key', '--config', 'new.yaml', '--json'],
      { env, dataDir: home.path('new-data') },
    );
    expect([made.code, made.stderr]).toEqual([0, '']);
    expect(readFileSync(home.path('new.yaml'), 'utf8')).toContain(`id: ${roblox.groupId}`);
  });
});

test('in a list of places, other fields may follow an id; several ids per line and UTF-16 are refused', async () => {
  using home = new CliHome();
  await home.json('key', 'create', 'game');
  const add = (text: string | Buffer) => {
    writeFileSync(home.path('list.csv'), text);
    return home.here(['whitelist', 'add', '--file', 'list.csv', '--json']);
  };
  const { stdout } = await add('\ufeff1005,lobby\r\n1006\tarena\n"1007";"test"\n');
  expect(JSON.parse(stdout).entries.map((entry: { placeId: number }) => entry.placeId)).toEqual([1005, 1006, 1007]);
  expect((await add('1008, 1009')).stderr).toContain('line 1 \\"1008, 1009\\"');
  expect((await add(Buffer.from('1008\n', 'utf16le'))).stderr).toContain('looks like UTF-16');
});

describe('names of roles in the configuration', () => {
  async function configured(policy: string) {
    const system = await openCloudHome();
    appendFileSync(system.home.path('rankd.yaml'), policy);
    return system;
  }

  test('work like their numbers', async () => {
    await using system = await configured('policy: { locked_roles: [captain], protected_roles: [Officer] }\n');
    const { home } = system;
    const codes = async (...args: string[]) => (await home.here(['rank', 'set', ...args, '--json'])).json()['code'];
    expect(await codes('1001', '50')).toBe('rank_not_allowed');
    expect(await codes(String(sampleUsers.officer), '10')).toBe('member_protected');
    expect(await home.here(['config', 'check'])).toMatchObject({ code: 0, stderr: '' });
  });

  test('without a role stop everything that depends on them, with the same message', async () => {
    await using system = await configured('policy: { locked_roles: [Captin] }\n');
    const { home, roblox } = system;
    roblox.expectNoWrites();
    const sentence = 'policy.locked_roles does not fit the group: no role in the group is called "Captin".';
    for (const args of [['config', 'check'], ['serve'], ['rank', 'set', '1001', '20'], ['rank', 'promote', '1001']]) {
      const { code, stderr } = await home.here(args);
      expect([args, code, stderr.split('\n')[0]]).toEqual([args, 78, expect.stringContaining(sentence)]);
    }
    const doctor = await home.here(['doctor']);
    expect([doctor.code, doctor.stdout]).toEqual([5, expect.stringContaining(sentence)]);
    expect((await home.here(['group', 'roles'])).stderr).toContain(sentence);
    expect(roblox.violations()).toEqual([]);
  });

  test('that two roles share are reported by config check', async () => {
    await using system = await configured('policy: { locked_roles: [captain] }\n');
    const { home, roblox } = system;
    roblox.group.roles.push({ id: 99_000_000_001, name: 'CAPTAIN', rank: 60 });
    const { stderr } = await home.here(['config', 'check']);
    expect(stderr).toContain('policy.locked_roles names "captain", and 2 roles have that name: it means all of them');
  });

  test('are checked against the group by reload, and refer to the same role while the daemon is running', async () => {
    await using system = await configured('policy: { locked_roles: [Captain] }\n');
    const { home, roblox } = system;
    await using daemon = await system.serve();
    const good = readFileSync(home.path('rankd.yaml'), 'utf8');
    writeFileSync(home.path('rankd.yaml'), good.replace('[Captain]', '[Captin]'));
    const refused = await home.here(['reload']);
    expect([refused.code, refused.stderr]).toEqual([
      78,
      expect.stringContaining('no role in the group is called "Captin"'),
    ]);
    expect(daemon.log).not.toContain('"the configuration was reloaded"');
    writeFileSync(home.path('rankd.yaml'), good);
    const captain = roblox.group.role(sampleRoles.captain);
    if (captain !== undefined) captain.name = 'Skipper';
    expect(await home.here(['rank', 'set', '1001', '50'])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('Skipper (rank 50) is locked'),
    });
    expect((await home.here(['rank', 'set', '1001', '20'])).code).toBe(0);
  });
});

test('a member without a given name is shown with the Roblox name, which is looked up in the background', async () => {
  await using system = await openCloudHome();
  const { home } = system;
  await home.json('rank', 'set', '1001', '20');
  await using _daemon = await system.serve();
  const nameShown = async () => (await home.json<{ changes: unknown[] }>('history', 'list')).changes[0];
  await expect.poll(nameShown).toMatchObject({ rankeeName: '', userName: 'Newcomer' });
  expect((await home.here(['history', 'list'])).stdout).toContain('Newcomer (1001)');
  await home.json('forget', '1001', '-y');
  expect(JSON.stringify(await home.json('history', 'list'))).not.toContain('Newcomer');
});
