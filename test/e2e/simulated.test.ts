import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { messageOf } from '../support/answers.ts';
import { DaemonHere } from '../support/daemon-here.ts';
import { type OpenCloudHome, openCloudHome } from '../support/open-cloud-home.ts';
import { binary, CliHome } from '../support/run-cli.ts';
import { send } from '../support/send.ts';

const trainee = '1001';
const simulatedLine = 'SIMULATED GROUP: nothing here touches Roblox.\n';

/** Creates a folder without a configuration. Commands that run there still use the same data directory. */
function elsewhere({ home }: Pick<OpenCloudHome, 'home'>): { cwd: string } {
  const cwd = home.path('elsewhere');
  mkdirSync(cwd, { recursive: true });
  return { cwd };
}

interface Findings {
  findings: Array<{ check: string; grade: string; text: string }>;
}

test.concurrent('after changes in a real group, a folder without a configuration does not use a simulated group', async () => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  await home.json('rank', 'set', trainee, '20');
  const there = elsewhere(world);
  for (const args of [
    ['rank', 'set', trainee, '50'],
    ['rank', 'promote', trainee],
    ['rank', 'show', trainee],
    ['rank', 'test', trainee, '50'],
    ['group', 'show'],
    ['group', 'roles'],
    ['history', 'undo', '--ranker', '0', '--since', '1h', '-y'],
    ['serve', '--port', '0'],
  ]) {
    const refused = await home.here(args, there);
    expect(refused, args.join(' ')).toMatchObject({ code: 78, stdout: '' });
    expect(refused.stderr).toContain(`This data directory serves group ${roblox.groupId} on `);
    expect(refused.stderr).toContain(
      `try: add --config ${home.path('rankd.yaml')}, or run the command in ${home.cwd}; `,
    );
  }
  const { findings } = (await home.here(['doctor', '--offline', '--json'], there)).json<Findings>();
  const text = expect.stringContaining('This data directory serves group');
  expect(findings).toContainEqual(expect.objectContaining({ grade: 'FAIL', text }));
  // This check would suggest `rankd init`, which would not solve the problem.
  expect(findings.map(({ check }) => check)).not.toContain('platform');
});

test.concurrent('a hint quotes file names with special characters for the shell', async () => {
  using home = new CliHome();
  const file = home.path("Ann's $HOME & more.yaml");
  writeFileSync(home.path('roblox.key'), 'of-roblox', { mode: 0o600 });
  await home.json('init', '--config', file, '--group', '7', '--credential-file', 'roblox.key', '--no-check');
  const { stderr } = await home.here(['rank', 'show', '1001'], elsewhere({ home }));
  const [, word = ''] = /^try: add (--config .+), or run the command in /m.exec(stderr) ?? [];
  const typed = await home.shell(`'${process.execPath}' '${binary}' config path ${word}`);
  expect(typed).toEqual({ code: 0, stdout: `${file}\n`, stderr: '' });
});

test.concurrent('a daemon or init also marks the real group as served; the hint names settings from the environment', async () => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  const daemon = await world.serve();
  await daemon.stop();
  expect((await home.here(['serve', '--port', '0'], elsewhere(world))).code).toBe(78);

  using fresh = new CliHome();
  writeFileSync(fresh.path('roblox.key'), roblox.apiKey, { mode: 0o600 });
  await fresh.json('init', '--group', String(roblox.groupId), '--credential-file', 'roblox.key', '--no-check');
  const byFile = await fresh.here(['rank', 'show', trainee], elsewhere({ home: fresh }));
  expect(byFile).toMatchObject({ code: 78, stderr: expect.stringContaining(fresh.path('rankd.yaml')) });

  rmSync(home.path('rankd.yaml'));
  const env = {
    RANKD_GROUP_ID: String(roblox.groupId),
    RANKD_PLATFORM_API_KEY: roblox.apiKey,
    RANKD_PLATFORM_BASE_URL: roblox.baseUrl,
    RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl,
  };
  expect(await home.here(['rank', 'set', trainee, '20'], { env })).toMatchObject({ code: 0 });
  const byVariables = await home.here(['rank', 'show', trainee]);
  expect(byVariables).toMatchObject({ code: 78, stderr: expect.stringContaining('came from the environment') });
});

test.concurrent('with the data of a real group, an explicit simulation still works, and so do commands next to it', async () => {
  await using world = await openCloudHome();
  const { home, roblox, secret } = world;
  await home.json('rank', 'set', trainee, '20');
  const there = elsewhere(world);
  await using daemon = await DaemonHere.start(home, { args: ['--simulate'] });
  const before = roblox.journal.entries.length;
  const answer = await daemon.rank(secret);
  expect([answer.status, messageOf(answer)]).toEqual([200, expect.stringMatching(/ \(simulated group\)$/)]);
  const shown = await home.here(['rank', 'show', trainee], there);
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('Officer'), stderr: simulatedLine });
  expect(roblox.journal.entries.length).toBe(before);
});

test.concurrent('every response from a simulated group shows that it is simulated', async () => {
  using home = new CliHome();
  await using daemon = await DaemonHere.start(home);
  const secret = await home.createKey();
  for (const newRankId of [20, 21]) {
    const answer = await daemon.rank(secret, { newRankId });
    expect(messageOf(answer)).toMatch(/ \(simulated group\)$/);
  }
  expect((await daemon.verify(secret)).headers).toMatchObject({ 'x-simulated-group': 'true' });
  const ready = await send(`${daemon.url}/readyz`, { method: 'GET' });
  expect(ready).toMatchObject({ json: { status: 'ready', simulated: true } });
  expect(await home.json('status')).toMatchObject({ status: { simulated: true } });
  expect((await home.here(['status'])).stdout).toMatch(/^group +SIMULATED: /m);
  for (const args of [
    ['health'],
    ['rank', 'show', trainee],
    ['rank', 'set', trainee, '50'],
    ['rank', 'test', trainee, '20'],
    ['group', 'show'],
  ]) {
    expect(await home.json(...args), args.join(' ')).toMatchObject({ simulated: true });
    expect((await home.here(args)).stderr).toMatch(new RegExp(`^${simulatedLine}`));
  }
  const { changes } = await home.json<{ changes: Array<{ simulated: boolean }> }>('history', 'list');
  expect(new Set(changes.map(({ simulated }) => simulated))).toEqual(new Set([true]));
  expect((await home.here(['history', 'list'])).stdout).toMatch(/ (applied|refused) \(simulated\) /);
});

test.concurrent('a daemon of a real group continues with that group if a reload finds no configuration', async () => {
  await using world = await openCloudHome();
  const { home, roblox, secret } = world;
  await using daemon = await world.serve();
  rmSync(home.path('rankd.yaml'));
  expect(await home.here(['reload'])).toMatchObject({
    code: 78,
    stderr: expect.stringContaining('This data directory serves group'),
  });
  expect(await daemon.rank(secret)).toMatchObject({ status: 200 });
  expect(roblox.journal.writes(Number(trainee)).length).toBeGreaterThan(0);
});

test.concurrent('on a real group, no response mentions a simulation', async () => {
  await using world = await openCloudHome();
  const { home, secret } = world;
  await using daemon = await world.serve();
  const answer = await daemon.rank(secret);
  expect(JSON.stringify(answer)).not.toMatch(/simulated/i);
  expect((await send(`${daemon.url}/readyz`, { method: 'GET' })).json).toEqual({ status: 'ready' });
  expect(await home.json('rank', 'show', trainee)).not.toHaveProperty('simulated');
  expect(await home.json('history', 'list')).toMatchObject({ changes: [{ simulated: false }] });
});

test.concurrent('a command that only reads warns about a daemon of a different group', async () => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  await using _daemon = await world.serve();
  const env = { RANKD_PLATFORM_KIND: 'simulated' };
  const warning = `warning: The running daemon changes ranks in group ${roblox.groupId} on `;
  for (const args of [
    ['rank', 'show', trainee],
    ['rank', 'test', trainee, '20'],
    ['group', 'roles'],
  ]) {
    expect(await home.here(args, { env })).toMatchObject({ code: 0, stderr: expect.stringContaining(warning) });
  }
  const { findings } = (await home.here(['doctor', '--json'], { env })).json<Findings>();
  const text = expect.stringContaining('changes ranks in group');
  expect(findings).toContainEqual(expect.objectContaining({ check: 'daemon', grade: 'warn', text }));
});

test.concurrent('an undo of a simulated change on a real group reports that it was simulated, not that it is missing', async () => {
  await using system = await openCloudHome();
  await system.home.here(['rank', 'set', '1001', '20'], { env: { RANKD_PLATFORM_KIND: 'simulated' } });
  const { id } = await system.latestChange();
  const { code, stderr } = await system.home.here(['history', 'undo', id, '-y']);
  expect(code).toBe(3);
  expect(stderr).toContain(`Rank change ${id} was made on the simulated group, so it can't be undone in group `);
  const missing = await system.home.here(['history', 'undo', 'chg_nothing', '-y']);
  expect(missing.stderr).toContain('There is no rank change chg_nothing.');
});

test.concurrent('a key created on the simulated group is valid only there until it is adopted', async () => {
  using home = new CliHome();
  const made = await home.here(['key', 'create', 'quiz']);
  expect(made.stderr).toContain('on a real group: rankd key adopt quiz\n');
  await home.json('whitelist', 'add', '1', '--key', 'quiz');
  const secret = made.stdout.trim();
  await using world = await openCloudHome();
  const env = { RANKD_CONFIG: world.home.path('rankd.yaml') };
  await using daemon = await DaemonHere.start(home, { env });
  expect(await daemon.verify(secret)).toMatchObject({ status: 401, json: { error: 'Invalid API Key' } });
  expect(daemon.log).toContain('game keys created on the simulated group are not accepted here: quiz.');
  expect(await home.here(['key', 'list'])).toMatchObject({ stdout: expect.stringMatching(/ active \(simulated\) /) });
  const verdict = await home.here(['key', 'verify', '-'], { input: secret });
  expect(verdict).toMatchObject({ code: 5, stdout: expect.stringContaining('created for the simulated group') });

  expect(await home.json('key', 'adopt', 'quiz')).toMatchObject({ key: { name: 'quiz', simulated: false } });
  expect(await daemon.verify(secret)).toMatchObject({ status: 200 });
  expect(await home.json('audit', 'list', '--action', 'key.adopt')).toMatchObject({
    events: [{ action: 'key.adopt' }],
  });
  expect(await home.here(['key', 'adopt', 'quiz'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('was not'),
  });
});

test.concurrent('a key that is created for a configured real group, by init or next to its daemon, is a real key', async () => {
  await using world = await openCloudHome();
  const { home, roblox } = world;
  await using simulated = await DaemonHere.start(home, { args: ['--simulate'] });
  const flags = ['--group', String(roblox.groupId), '--credential-file', 'roblox.key', '--force', '--key', 'hall'];
  await home.json('init', ...flags, '--no-check');
  await home.json('key', 'create', 'beside-simulation');
  await simulated.stop();
  await home.json('key', 'create', 'by-file');
  const there = elsewhere(world);
  await home.here(['key', 'create', 'by-memory'], there);
  const { keys } = await home.json<{ keys: Array<{ name: string; simulated: boolean }> }>('key', 'list');
  expect(Object.fromEntries(keys.map(({ name, simulated }) => [name, simulated]))).toEqual({
    game: false,
    hall: false,
    'beside-simulation': true,
    'by-file': false,
    'by-memory': false,
  });
});
