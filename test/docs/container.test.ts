import { execFile } from 'node:child_process';
import { cpSync, existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { otherVariables } from '../../src/config/layers.ts';
import { settings } from '../../src/config/settings.ts';
import { chooseStore } from '../../src/config/store-choice.ts';
import { everyCommand } from '../support/every-command.ts';
import { TempDir } from '../support/temp-dir.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');

function stages(): Array<Array<{ name: string; rest: string }>> {
  const lines = read('config/Dockerfile')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const instructions = lines.map((line) => {
    const [, name = '', rest = ''] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    return { name, rest };
  });
  const starts = instructions.flatMap(({ name }, index) => (name === 'FROM' ? [index] : []));
  return starts.map((start, index) => instructions.slice(start, starts[index + 1]));
}

const imageStage = () => stages().at(-1) ?? [];
const inImage = (name: string) => imageStage().flatMap((one) => (one.name === name ? [one.rest] : []));

const variables = () =>
  Object.fromEntries(inImage('ENV').flatMap((rest) => rest.split(' ').map((set) => set.split(/=(.*)/))));
const knownVariables = [...settings.map(({ env }) => env), ...otherVariables];

test('every file that goes into the image exists and is in the build context', () => {
  const given = read('config/Dockerfile.dockerignore')
    .split('\n')
    .flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []));
  const copies = stages()
    .flat()
    .filter(({ name }) => name === 'COPY');
  const sources = copies.flatMap(({ rest }) => (rest.startsWith('--from') ? [] : rest.split(' ').slice(0, -1)));
  expect(new Set(sources.map((path) => path.split('/')[0]))).toEqual(new Set(given));
  for (const path of sources) expect([path, existsSync(new URL(path, root))]).toEqual([path, true]);
});

test('the files of the build stage are enough to build everything that the image takes from it', async () => {
  using dir = new TempDir();
  for (const { name, rest } of stages()[0] ?? []) {
    if (name !== 'COPY') continue;
    const paths = rest.split(' ').slice(0, -1);
    for (const path of paths) cpSync(new URL(path, root), join(dir.path, path), { recursive: true });
  }
  symlinkSync(new URL('node_modules', root), join(dir.path, 'node_modules'));
  await promisify(execFile)(process.execPath, ['node_modules/tsup/dist/cli-default.js'], { cwd: dir.path });
  for (const part of ['main.js', 'rankd.1', 'THIRD-PARTY-NOTICES', 'dashboard/index.html', 'game/Rankd.rbxmx'])
    expect([part, existsSync(join(dir.path, 'dist', part))]).toEqual([part, true]);
});

test('the image does not run as root, stores its data in a volume, and uses existing commands to serve and to check health', () => {
  const [dataDir] = inImage('VOLUME');
  expect(inImage('USER')).toEqual(['node']);
  expect(variables()).toMatchObject({ NODE_ENV: 'production', RANKD_DATA_DIR: dataDir });
  const [healthcheck = ''] = inImage('HEALTHCHECK');
  const lines = [...inImage('ENTRYPOINT'), ...inImage('CMD'), healthcheck.slice(healthcheck.indexOf('['))];
  const [entrypoint, command, health] = lines.map((line) => JSON.parse(line));
  expect([[...entrypoint, ...command], health]).toEqual([
    ['rankd', 'serve'],
    ['rankd', 'health'],
  ]);
  expect(everyCommand).toEqual(expect.arrayContaining(['serve', 'health']));
});

test("the image sets only rankd's variables, and the Node.js options from the systemd unit", () => {
  const { NODE_ENV: _, NODE_OPTIONS, ...ofRankd } = variables();
  expect(read('config/rankd.service')).toContain(`\nEnvironment=NODE_OPTIONS=${NODE_OPTIONS}\n`);
  expect(knownVariables).toEqual(expect.arrayContaining(Object.keys(ofRankd)));
});

test('the image uses the same Node.js as the tests', () => {
  const [major] = process.versions.node.split('.');
  const images = stages().map(([from]) => from?.rest.split(/[:-]/).slice(0, 2));
  expect(images).toEqual([
    ['node', major],
    ['node', major],
  ]);
});

interface Service {
  build?: { context: string; dockerfile: string };
  command?: string;
  environment?: Record<string, string>;
  ports?: string[];
  volumes?: string[];
  secrets?: string[];
  [option: string]: unknown;
}

interface Compose {
  services: Record<string, Service>;
  volumes: Record<string, null>;
  secrets: Record<string, { file: string }>;
  configs?: Record<string, { content: string }>;
}

const examples = ['config/compose.example.yaml', 'config/compose.postgres.example.yaml'];
const composeOf = (example: string): Compose => parse(read(example), { merge: true });
const daemonsOf = ({ services }: Compose) => Object.entries(services).filter(([, { build }]) => build !== undefined);

test.each(examples)('%s restricts rankd, and exposes only Caddy', (example) => {
  const compose = composeOf(example);
  const port = settings.find(({ path }) => path === 'server.port')?.default;
  const { caddy } = compose.services;
  const proxied = caddy?.command ?? compose.configs?.['caddyfile']?.content ?? '';
  for (const [name, daemon] of daemonsOf(compose)) {
    expect(daemon).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
    expect(proxied).toContain(`${name}:${port}`);
  }
  const open = Object.entries(compose.services).flatMap(([name, { ports }]) => (ports === undefined ? [] : [name]));
  expect(open).toEqual(['caddy']);
  expect(caddy?.ports).toEqual(['80:80', '443:443']);
  expect(inImage('EXPOSE')).toEqual([String(port)]);
});

test.each(examples)('%s names files, volumes, secrets and variables that exist', (example) => {
  const compose = composeOf(example);
  const services = Object.values(compose.services);
  const mounted = services.flatMap(({ volumes = [] }) => volumes.map((volume) => volume.split(':')[0] ?? ''));
  const named = mounted.filter((name) => !name.startsWith('./'));
  expect(new Set(named)).toEqual(new Set(Object.keys(compose.volumes)));
  expect(new Set(services.flatMap(({ secrets = [] }) => secrets))).toEqual(new Set(Object.keys(compose.secrets)));
  for (const [, { build, environment = {} }] of daemonsOf(compose)) {
    expect(existsSync(new URL(build?.dockerfile ?? 'none', root))).toBe(true);
    expect(knownVariables).toEqual(expect.arrayContaining(Object.keys(environment)));
  }
});

test('the example with PostgreSQL has three daemons with separate data directories, one reachable database, and readiness checks', () => {
  const compose = composeOf('config/compose.postgres.example.yaml');
  const daemons = daemonsOf(compose);
  expect(daemons).toHaveLength(3);
  expect(new Set(daemons.map(([, { volumes = [] }]) => volumes[0])).size).toBe(3);
  for (const [name, { environment = {} }] of daemons) {
    const env: Record<string, string> = { ...environment, RANKD_STORE_PASSWORD: 'of-the-secret' };
    const { server, problems } = chooseStore({
      settings: { url: env['RANKD_STORE_URL'], tls: env['RANKD_STORE_TLS'] },
      ...{ env, isUrlInFile: false, folderOf: () => '/' },
    });
    const { POSTGRES_USER: user, POSTGRES_DB: database } = compose.services['postgres']?.environment ?? {};
    expect(problems).toEqual([]);
    expect(server).toMatchObject({ host: 'postgres', port: 5432, user, database, tls: false });
    expect(env['RANKD_STORE_NODE']).toBe(name);
  }
  expect(compose.configs?.['caddyfile']?.content).toContain('health_uri /readyz');
});
