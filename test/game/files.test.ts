import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { type GameScript as Source, systemNames, toModel } from '../../src/cli/game-models.ts';
import { blocksOf } from '../support/readme-commands.ts';
import { parseModel, scriptsOf } from '../support/roblox-model.ts';
import { CliHome } from '../support/run-cli.ts';
import type { GameScript } from './game.ts';
import { applied, openScene, secret } from './scene.ts';

const url = 'https://rankd.example.com';
const folder = new URL('../../src/game/', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, folder), 'utf8');
const systems = readdirSync(new URL('plugins', folder));
const pieces = readdirSync(new URL('pieces', folder)).map((file) => file.replace('.server.luau', ''));
const all = [...systems, ...pieces];

function newHome(): CliHome {
  const home = new CliHome();
  onTestFinished(() => home[Symbol.dispose]());
  return home;
}

const commands = ['promote', 'demote', 'setrank', 'suspend', 'unsuspend'];

/** Returns every script for a game. A file with COMMAND in its name becomes one script for each command. */
const luauFiles = () =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.luau'))
    .flatMap((file) => (file.includes('COMMAND') ? commands.map((name) => file.replace('COMMAND', name)) : [file]));

/** Returns the source file of a generated script. */
function sourceOf(file: string): string {
  const shared = file.replace(new RegExp(`/(${commands.join('|')})(?=(Server)?\\.luau$)`), '/COMMAND');
  return /^plugins\/(BasicAdmin|Cmdr)\//.test(file) ? shared : file;
}

/** Returns the scripts that a model file adds to ServerScriptService. */
function mounted(file: string): GameScript[] {
  return scriptsOf(parseModel(readFileSync(file, 'utf8'))).map((script) => ({
    ...script,
    path: ['ServerScriptService', ...script.path],
  }));
}

test('game write makes models that contain each source once, unchanged except for the values in Config', async () => {
  const home = newHome();
  const { code, stderr } = await home.here(['game', 'write', '--url', url, ...all]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const sources = luauFiles();
  const written = ['Rankd', ...all].flatMap((name) =>
    scriptsOf(parseModel(readFileSync(home.path(`${name}.rbxmx`), 'utf8'))).map(({ path, ...script }) => {
      const own = path.length === 1 ? 'Rankd/init' : path.at(-1) === 'Config' ? 'Config' : path.join('/');
      const place = pieces.includes(name) ? 'pieces' : `plugins/${name}`;
      const file = name === 'Rankd' ? own : `${place}/${path.join('/')}`;
      return [`${file}${script.class === 'Script' ? '.server' : ''}.luau`, script.source] as const;
    }),
  );
  expect(written.map(([file]) => file).toSorted()).toEqual(sources.toSorted());
  for (const [file, text] of written) {
    if (file !== 'Config.luau') expect(text, file).toBe(read(sourceOf(file)));
  }
  const [, config = ''] = written.find(([file]) => file === 'Config.luau') ?? [];
  expect(config.replace(`url = "${url}"`, 'url = ""')).toBe(read('Config.luau'));
});

test('the built package has the same models, with an empty Config that is reported', async () => {
  const home = newHome();
  await home.json('game', 'write', '--url', url, ...all);
  const built = (name: string) => new URL(`../../dist/game/${name}.rbxmx`, import.meta.url);
  const filled = `url = "${url}"`;
  for (const name of ['Rankd', ...all])
    expect(readFileSync(built(name), 'utf8')).toBe(
      readFileSync(home.path(`${name}.rbxmx`), 'utf8').replace(filled, 'url = ""'),
    );
  await using scene = await openScene({ scripts: mounted(fileURLToPath(built('Rankd'))), serve: applied });
  const { code, message } = await scene.run('return Rankd.new():verify()');
  expect([code, message]).toEqual(['invalid_argument', expect.stringMatching(/^Rankd\.Config needs rankd's url/)]);
});

test('a model’s module reads its address and secret from Config, and a script can override them', async () => {
  const home = newHome();
  const args = ['--url', 'RANKD.example.com/', '--secret', 'ranks', '--group', '700', '--min-rank', '20'];
  expect(await home.here(['game', 'write', ...args])).toMatchObject({ code: 0 });
  await using scene = await openScene({
    scripts: mounted(home.path('Rankd.rbxmx')),
    secrets: { ranks: secret },
    serve: () => ({ status: 200, body: '"ws_1"' }),
  });
  const config = await scene.run(`
    local module = game:GetService("ServerScriptService").Rankd
    local verified = Rankd.new():verify().code
    Rankd.new({ url = "https://other.example" }):verify()
    local config = require(module.Config)
    return { verified, config.url, config.secret, config.groupId, config.minGroupRank }`);
  expect(config).toEqual(['ok', url, 'ranks', 700, 20]);
  expect(scene.game.requests.map((request) => request.url.replace(/\/v1.*/, ''))).toEqual([
    url,
    'https://other.example',
  ]);
  expect(scene.headers('authorization')).toEqual([`Bearer ${secret}`, `Bearer ${secret}`]);
});

test('the scripts in docs/in-game.md and README run next to the model, and the first one reports whether everything works', async () => {
  const home = newHome();
  await home.json('game', 'write', '--url', url);
  await using scene = await openScene({
    scripts: mounted(home.path('Rankd.rbxmx')),
    serve: (request) => (request.url.includes('/v2/') ? applied(request) : { status: 200, body: '"ws_1"' }),
  });
  const [check = '', promotion = ''] = blocksOf('docs/in-game.md', 'lua');
  await scene.clock.passUntil(scene.game.run(check));
  await scene.clock.passUntil(scene.game.run(`${promotion}\nreturn promote(game.Players.Ann, game.Players.Bob)`));
  await scene.clock.passUntil(scene.game.run(`local player = game.Players.Ann\n${blocksOf('README.md', 'lua')[0]}`));
  expect(scene.game.output).toEqual([
    'print rankd responds, and the key is valid for place 1 (workspace ws_1).',
    'print 1001 is Officer.',
    'print 1001 is Officer.',
  ]);
});

test('rankd script prints the module as one file, which runs with the given address and secret', async () => {
  const home = newHome();
  const { stdout, stderr } = await home.here(['script', '--url', url, '--secret', 'ranks']);
  expect(stderr).toContain('ServerScriptService');
  const filled = `\turl = "${url}",\n\tsecret = "ranks",\n`;
  expect(stdout).toContain(filled);
  expect(stdout.replace(filled, '\turl = nil,\n\tsecret = nil,\n')).toBe(read('Rankd/init.luau'));
  await using scene = await openScene({
    scripts: [{ class: 'ModuleScript', path: ['ServerScriptService', 'Rankd'], source: stdout }],
    secrets: { ranks: secret },
    serve: () => ({ status: 200, body: '"ws_1"' }),
  });
  expect(await scene.run('return Rankd.new():verify()')).toMatchObject({ ok: true });
  expect(scene.game.requests[0]?.url).toBe(`${url}/v1/apikey`);
});

test('the files parse, run and contain exactly the given text, whatever it is', async () => {
  const home = newHome();
  await using scene = await openScene({ serve: () => ({ raise: 'nobody is asked' }) });
  const hostile = [
    '"',
    '\\',
    ']]>',
    ']]',
    '\n',
    '\r\n',
    '\u0000',
    '`{}`',
    '$&$1',
    '--[[',
    '%d',
    '\u2028é😀',
    'error()',
  ];
  const text = fc.oneof(
    fc.array(fc.constantFrom(...hostile, 'a', '1'), { minLength: 1, maxLength: 8 }).map((parts) => parts.join('')),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }),
  );
  let count = 0;
  await fc.assert(
    fc.asyncProperty(text, async (name) => {
      count += 1;
      expect(await home.here(['game', 'write', '--url', url, '--force', '--secret', name])).toMatchObject({ code: 0 });
      const config = mounted(home.path('Rankd.rbxmx')).find(({ path }) => path.at(-1) === 'Config');
      const at = `Config${count}`;
      await scene.game.mount([
        { class: 'ModuleScript', path: ['ServerScriptService', at], source: config?.source ?? '' },
      ]);
      const script = `return require(game:GetService("ServerScriptService").${at}).secret`;
      expect(await scene.run<string>(script)).toBe(name);
      const alone = (await home.here(['script', '--url', url, '--secret', name])).stdout;
      const filled = /^\tsecret = .*,$/m;
      expect(alone.match(filled)?.[0]).toBe(config?.source?.match(filled)?.[0]);
    }),
    { numRuns: 30, examples: hostile.map((one) => [one]) },
  );
});

test('the names and sources in a model survive XML unchanged', () => {
  const source = '--[[ ]]> ]]]]>> <![CDATA[ &amp; </ProtectedString>\n\té😀 ]]>';
  const script: Source = { name: 'a<b>&]]>"c', class: 'Script', source, children: [] };
  expect(parseModel(toModel([{ name: 'Folder', class: 'Folder', source: '', children: [script] }]))).toEqual([
    {
      class: 'Folder',
      properties: { Name: 'Folder' },
      children: [{ class: 'Script', properties: { Name: script.name, Source: source }, children: [] }],
    },
  ]);
});

test('existing files are left unchanged, or renamed to .old with --force', async () => {
  const home = newHome();
  writeFileSync(home.path('Rankd.rbxmx'), 'mine');
  const refused = await home.here(['game', 'write', '--url', url]);
  expect(refused).toMatchObject({ code: 4, stdout: '', stderr: expect.stringContaining('try: add --force') });
  expect(readFileSync(home.path('Rankd.rbxmx'), 'utf8')).toBe('mine');
  expect(await home.here(['game', 'write', '--url', url, '--force'])).toMatchObject({ code: 0 });
  expect(readFileSync(home.path('Rankd.rbxmx.old'), 'utf8')).toBe('mine');
  writeFileSync(home.path('mine.luau'), 'mine');
  expect(await home.here(['script', '--url', url, '--out', 'mine.luau'])).toMatchObject({ code: 4, stdout: '' });
});

test('--luau writes scripts that Rojo builds into the same instances', async () => {
  const home = newHome();
  mkdirSync(home.path('out'));
  await home.json('game', 'write', '--url', url, '--luau', '--out', 'out', ...all);
  const written = readdirSync(home.path('out'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.includes('.'),
  );
  const asSource = (file: string) =>
    file === 'Rankd/Config.luau'
      ? 'Config.luau'
      : file.startsWith('Rankd/')
        ? file
        : `${pieces.includes(file.split('/')[0] ?? '') ? 'pieces' : 'plugins'}/${file.replace(/^(.+)\/\1\./, '$1.')}`;
  const sources = luauFiles();
  expect(written.map(asSource).toSorted()).toEqual(sources.toSorted());
  for (const file of written.filter((one) => one !== 'Rankd/Config.luau'))
    expect(readFileSync(home.path(`out/${file}`), 'utf8'), file).toBe(read(sourceOf(asSource(file))));
  expect(readFileSync(home.path('out/Rankd/Config.luau'), 'utf8')).toContain(`url = "${url}"`);
});

test('without an address, or for an unknown system, nothing is written and the error gives the command to type', async () => {
  const home = newHome();
  for (const args of [['script'], ['game', 'write']]) {
    const { code, stderr } = await home.here(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /server\.public_url is not set\.\ntry: rankd .* --url https:\/\/rankd\.example\.com, or set/,
    );
  }
  expect(await home.here(['game', 'write', 'Nobody', '--url', url])).toMatchObject({ code: 3 });
  expect(readdirSync(home.cwd)).toEqual([]);
  writeFileSync(home.path('rankd.yaml'), `server: { public_url: "${url}" }\n`);
  expect((await home.here(['script'])).stdout).toContain(`url = "${url}"`);
});

test('without a minimum rank for callers, game write states who can use the commands, unless Config may already set one', async () => {
  const home = newHome();
  const stderrOf = async (...args: string[]) => (await home.here(['game', 'write', '--url', url, ...args])).stderr;
  const warning = 'every admin can change ranks, even a temporary one';
  expect(await stderrOf('gamepass-rank')).not.toContain(warning);
  expect(await stderrOf('Adonis', '--force')).toContain(warning);
  expect(await stderrOf('Adonis', '--force', '--min-rank', '200')).not.toContain(warning);
  expect(await stderrOf('HDAdmin')).not.toContain(warning);
});

test('game list names every model and its place in the game', async () => {
  const { models } = await newHome().json<{ models: Array<{ name: string; place: string }> }>('game', 'list');
  expect(models.map(({ name }) => name).toSorted()).toEqual(['Rankd', ...all].toSorted());
  expect([...systemNames].toSorted()).toEqual(systems.toSorted());
  expect(models.map(({ place }) => place).join()).not.toContain('docs/in-game.md');
});

test('the projects for Rojo, Wally and pesde list every module except Config, no other file, and the version of the package', () => {
  expect(JSON.parse(read('default.project.json'))).toEqual({ name: 'Rankd', tree: { $path: 'Rankd' } });
  const fieldsOf = (file: string) =>
    Object.fromEntries(
      [...read(file).matchAll(/^(\w+) = (".*"|\[.*\])$/gm)].map(([, name = '', value = '']) => [name, parse(value)]),
    ) as Record<string, string | string[]>;
  const shared = { version: manifest.version, license: manifest.license, authors: ['The rankd authors'] };
  const wally = fieldsOf('wally.toml');
  expect(wally).toMatchObject({ ...shared, realm: 'server' });
  expect(wally['name']).toMatch(/^[a-z0-9-]+\/rankd$/);
  const pesde = fieldsOf('pesde.toml');
  expect(pesde).toMatchObject({
    ...shared,
    environment: 'roblox_server',
    lib: 'Rankd/init.luau',
    build_files: ['Rankd'],
  });
  expect(pesde['name']).toMatch(/^[a-z0-9_]+\/rankd$/);
  // No registry requires a homepage or a repository, and only the publisher knows their addresses.
  const addresses = (file: string) => read(file).match(/https:[^"\s]+/g);
  expect(addresses('wally.toml')).toEqual(['https://github.com/UpliftGames/wally-index']);
  expect(addresses('pesde.toml')).toEqual(['https://github.com/pesde-pkg/index']);
  // A package contains no plugins, and no Config, because a package manager replaces the whole package on an update.
  const modules = readdirSync(new URL('Rankd', folder)).map((file) => `Rankd/${file}`);
  expect([...(pesde['includes'] ?? [])].toSorted()).toEqual(['pesde.toml', ...modules].toSorted());
  expect([...(wally['include'] ?? [])].toSorted()).toEqual(
    ['default.project.json', 'wally.toml', ...modules].toSorted(),
  );
  expect(JSON.parse(read('.luaurc'))).toEqual({ languageMode: 'strict' });
});
