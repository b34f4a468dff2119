import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { runCli } from '../../src/cli/program.ts';
import { TerminalIo } from '../support/command-io.ts';
import { startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { CliHome } from '../support/run-cli.ts';

/** With --no-check, the result depends only on this machine. */
const flags = ['init', '--group', '4199740', '--credential-file', 'cloud.key', '--no-check'];

function machine(): CliHome {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  writeFileSync(home.path('cloud.key'), 'an-open-cloud-key\n', { mode: 0o600 });
  return home;
}

test.each<[what: string, code: number, args: string[], hint: RegExp]>([
  ['a name that a key already has', 4, ['--key', 'taken'], /a different name with --key/],
  ['an --out that already exists', 4, ['--key', 'game', '--out', 'cloud.key'], /a different name/],
  ['an --out in a folder that is missing', 3, ['--key', 'game', '--out', 'nowhere/game.key'], /mkdir -p .+nowhere/],
  ['a place without a key', 2, ['--place', '42'], /--key NAME/],
  ['an --out without a key', 2, ['--out', 'game.key'], /--key NAME/],
  ['a configuration in a folder that is missing', 3, ['--config', 'new/rankd.yaml'], /mkdir -p .+new/],
])('with %s, init exits with %i before it writes anything, and its hint fits init', async (_, code, args, hint) => {
  const home = machine();
  await home.json('key', 'create', 'taken');
  const result = await home.here([...flags, ...args]);
  expect(result).toMatchObject({ code, stdout: '' });
  expect(result.stderr).toMatch(hint);
  expect(readdirSync(home.cwd)).toEqual(['cloud.key']);
  expect((await home.json<{ keys: unknown[] }>('key', 'list')).keys).toHaveLength(1);
});

test('if a later step fails, init removes the files that it wrote and restores those that it moved', async () => {
  const home = machine();
  writeFileSync(home.path('roblox.key'), 'the-key-before\n');
  const args = ['init', '--group', '4199740', '--credential-file', '-', '--no-check', '--force'];
  const result = await home.here([...args, '--key', 'game', '--out', 'rankd.yaml'], { input: 'another-key\n' });
  expect(result.code).toBe(4);
  expect(readdirSync(home.cwd).sort()).toEqual(['cloud.key', 'roblox.key']);
  expect(readFileSync(home.path('roblox.key'), 'utf8')).toBe('the-key-before\n');
});

test('init writes the configuration to the first path that rankd reads: --config, then RANKD_CONFIG, then ./rankd.yaml', async () => {
  const home = machine();
  const env = { RANKD_CONFIG: home.path('mine.yaml') };
  const fileOf = async (args: string[], options = {}) => {
    const { code, stdout, stderr } = await home.here([...flags, ...args], options);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    return stdout.trim();
  };
  expect(await fileOf(['--config', 'named.yaml'], { env })).toBe(home.path('named.yaml'));
  expect(await fileOf([], { env })).toBe(home.path('mine.yaml'));
  expect(await fileOf([])).toBe(home.path('rankd.yaml'));
});

test('init --force succeeds if the configuration and the Roblox key exist, and preserves both', async () => {
  const home = machine();
  const args = ['init', '--group', '4199740', '--credential-file', '-', '--no-check'];
  expect((await home.here(args, { input: 'first-key\n' })).code).toBe(0);
  expect((await home.here([...args, '--force'], { input: 'second-key\n' })).code).toBe(0);
  expect(readFileSync(home.path('roblox.key'), 'utf8')).toBe('second-key\n');
  expect(readFileSync(home.path('roblox.key.old'), 'utf8')).toBe('first-key\n');
  expect((await home.here(['config', 'check'])).code).toBe(0);
});

test('init does not change an unrelated Rankd.rbxmx, and prints how to overwrite it; --force renames it to .old', async () => {
  const home = machine();
  writeFileSync(home.path('Rankd.rbxmx'), 'mine');
  const { code, stderr } = await home.here([...flags, '--url', 'rankd.example.com']);
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringMatching(/was not changed.*rankd game write --force$/m),
  });
  expect(readFileSync(home.path('Rankd.rbxmx'), 'utf8')).toBe('mine');
  expect((await home.here([...flags, '--url', 'rankd.example.com', '--force'])).stderr).toContain(
    'Insert from File: /',
  );
  expect(readFileSync(home.path('Rankd.rbxmx.old'), 'utf8')).toBe('mine');
  expect((await home.here(['script'])).stdout).toContain('url = "https://rankd.example.com"');
});

test('in the file that init writes, deleting the # before a setting makes it apply', async () => {
  const home = machine();
  expect((await home.here(flags)).code).toBe(0);
  const written = readFileSync(home.path('rankd.yaml'), 'utf8');
  expect(written).toContain('\n  #max_rank: 254\n');
  writeFileSync(home.path('rankd.yaml'), written.replaceAll(/^( *)#(?=\w+: \S)/gm, '$1'));
  expect(await home.here(['config', 'check'])).toMatchObject({ code: 0, stderr: '' });
  const { settings } = await home.json<{ settings: Array<{ name: string; source: string }> }>('config', 'show');
  expect(settings.find(({ name }) => name === 'policy.max_rank')).toMatchObject({ source: 'file' });
});

test('on a terminal, init asks again after an invalid Roblox key or the name of an existing key', async () => {
  const home = machine();
  await home.json('key', 'create', 'my-game');
  writeFileSync(home.path('second.key'), 'of another');
  const io = new TerminalIo(home, [
    '',
    '"quoted"',
    'an-open-cloud-key',
    'y',
    '',
    'second',
    'other-game',
    '42',
    '',
    '',
    'n',
  ]);
  expect(await runCli(['init', '--group', '4199740', '--no-check'], io), io.err).toBe(0);
  expect(io.err).toContain('The key is empty');
  expect(io.err).toContain('"my-game" already exists');
  expect(io.err).toContain('The file second.key already exists');
  expect(readFileSync(home.path('second.key'), 'utf8')).toBe('of another');
  expect((await home.here(['whitelist', 'check', '42', '--key', 'other-game'])).code).toBe(0);
});

test.each([
  ['', 'the key is empty'],
  ['two words', 'the key contains spaces'],
])('a file whose content %j is not a Roblox key is reported with the reason', async (content, flaw) => {
  const home = machine();
  writeFileSync(home.path('cloud.key'), content);
  const { code, stderr } = await home.here(flags);
  expect({ code, stderr }).toEqual({ code: 78, stderr: expect.stringContaining(`cloud.key: ${flaw}`) });
  expect(readdirSync(home.cwd)).toEqual(['cloud.key']);
});

test('for a group that Roblox does not know, init exits with 3 and explains where to find the id', async () => {
  const home = machine();
  const roblox = await startFakeOpenCloud();
  onTestFinished(() => roblox.close());
  writeFileSync(home.path('cloud.key'), roblox.apiKey);
  const env = { RANKD_PLATFORM_BASE_URL: roblox.baseUrl, RANKD_PLATFORM_LEGACY_BASE_URL: roblox.legacyBaseUrl };
  const { code, stderr } = await home.here(['init', '--group', '99', '--credential-file', 'cloud.key'], { env });
  expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringMatching(/no such group.*\ntry: .*address/) });
});
