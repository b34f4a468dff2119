import { execFileSync } from 'node:child_process';
import { accessSync, constants, cpSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };
import { TempDir } from '../support/temp-dir.ts';

interface Step {
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}

interface Job {
  'runs-on': string;
  strategy?: { matrix: { os: string[]; node: string[] } };
  needs?: string;
  permissions?: Record<string, string>;
  steps: Step[];
}

interface Workflow {
  on: Record<string, unknown>;
  permissions: Record<string, string>;
  jobs: Record<string, Job>;
}

const root = new URL('../../', import.meta.url);
const folder = new URL('.github/workflows/', root);
const workflow = (name: string): Workflow => parse(readFileSync(new URL(name, folder), 'utf8'));
const stepsOf = (name: string) => Object.values(workflow(name).jobs).flatMap(({ steps }) => steps);

describe.each(readdirSync(folder))('%s', (name) => {
  test('runs only existing scripts, commands and files', () => {
    for (const { run = '', with: given = {} } of stepsOf(name)) {
      for (const [, script = ''] of run.matchAll(/\bnpm run ([\w-]+)/g))
        expect(manifest.scripts).toHaveProperty(script);
      if (run.startsWith('npx ')) expect(run).toMatch(new RegExp(`^npx (${Object.keys(manifest.bin).join('|')}) `));
      if (run.startsWith('.')) accessSync(new URL(run, root), constants.X_OK);
      if (given['file'] !== undefined) expect(existsSync(new URL(String(given['file']), root))).toBe(true);
    }
  });

  test('has only read access unless a job declares more, and inserts no untrusted text into a script', () => {
    const { on, permissions, jobs } = workflow(name);
    expect(permissions).toEqual({ contents: 'read' });
    expect(on).not.toHaveProperty('pull_request_target');
    for (const { run = '' } of stepsOf(name)) expect(run).not.toContain('${{');
    if ('pull_request' in on) for (const job of Object.values(jobs)) expect(job.permissions).toBeUndefined();
  });
});

test('every action is pinned to a commit, with its version next to it', () => {
  const lines = readdirSync(folder).flatMap(
    (name) => readFileSync(new URL(name, folder), 'utf8').match(/uses: .*/g) ?? [],
  );
  for (const line of lines) expect(line).toMatch(/^uses: (actions|docker)\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  const pins = new Set(lines);
  expect(new Set([...pins].map((line) => line.split('@')[0])).size).toBe(pins.size);
});

test('CI runs npm test, the PostgreSQL tests and the Luau check, and tests the package on each system with the oldest, current and newest Node', async () => {
  const { linux, luau, package: onAll } = workflow('ci.yml').jobs;
  expect(luau?.steps.map(({ run }) => run)).toContain('.ci/luau');
  expect(linux?.steps.map(({ run }) => run)).toEqual(expect.arrayContaining(['.ci/run', 'npm run test:postgres']));
  const { lowestNode } = await import(new URL('bin/lowest-node.js', root).href);
  const { os = [], node = [] } = onAll?.strategy?.matrix ?? {};
  expect(os.map((system) => system.split('-')[0])).toEqual(['ubuntu', 'windows', 'macos']);
  expect(node).toEqual([lowestNode, '24', 'latest']);
  expect(onAll?.steps).toContainEqual(
    expect.objectContaining({ run: 'npm run smoke -- --node "$(node -p process.execPath)"' }),
  );
});

test('a release names its repository and its lowest Node, and has no install script', () => {
  using folder = new TempDir();
  for (const part of ['package.json', 'bin']) cpSync(new URL(part, root), join(folder.path, part), { recursive: true });
  const steps = workflow('release.yml').jobs['package']?.steps ?? [];
  const script = steps.flatMap(({ run = '' }) => (/npm pkg (set|delete)/.test(run) ? [run] : [])).join('\n');
  const env = { ...process.env, GITHUB_REPOSITORY: 'someone/rankd' };
  execFileSync('bash', ['-ec', script], { cwd: folder.path, env });
  const npm = ['pack', '--ignore-scripts', '--offline', '--silent'];
  const tarball = execFileSync('npm', npm, { cwd: folder.path, encoding: 'utf8' }).trim();
  const packed = ['-xzOf', tarball, 'package/package.json'];
  const released = JSON.parse(execFileSync('tar', packed, { cwd: folder.path, encoding: 'utf8' }));
  const { prepare: _, ...scripts } = manifest.scripts;
  expect(released).toEqual({
    ...manifest,
    scripts,
    repository: { type: 'git', url: 'git+https://github.com/someone/rankd.git' },
    homepage: 'https://github.com/someone/rankd#readme',
    bugs: { url: 'https://github.com/someone/rankd/issues' },
    engines: { node: '>=22.14' },
  });
});

test('a release is published as it was checked, with provenance and without a stored token', () => {
  const { package: published, image } = workflow('release.yml').jobs;
  const runs = published?.steps.flatMap(({ run }) => run ?? []) ?? [];
  const publish = runs.findIndex((run) => run.startsWith('npm publish'));
  expect(runs[publish]).toContain('--provenance');
  const [checked, withoutScripts] = [runs.indexOf('.ci/run'), runs.indexOf('npm pkg delete scripts.prepare')];
  expect([checked >= 0, checked < withoutScripts, withoutScripts < publish]).toEqual([true, true, true]);
  expect(published?.permissions).toEqual({ contents: 'read', 'id-token': 'write' });
  expect(image).toMatchObject({ needs: 'package', permissions: { contents: 'read', packages: 'write' } });
  expect(readFileSync(new URL('release.yml', folder), 'utf8')).not.toMatch(/secrets\.(?!GITHUB_TOKEN)/);
});

test("a release has the archives with their checksums and an attestation, and its version's notes from CHANGELOG", () => {
  const { steps = [], needs, permissions } = workflow('release.yml').jobs['archives'] ?? {};
  expect(needs).toBe('package');
  expect(permissions).toEqual({ contents: 'write', 'id-token': 'write', attestations: 'write' });
  const attested = steps.find(({ uses = '' }) => uses.startsWith('actions/attest-build-provenance@'));
  expect(attested?.with).toEqual({ 'subject-path': 'portable/rankd-*' });
  const runs = steps.map(({ run = '' }) => run);
  expect(runs.indexOf('npm run portable')).toBeGreaterThan(0);
  expect(runs.at(-1)).toMatch(/^gh release create "\$GITHUB_REF_NAME" .*--notes-file notes\.md portable\/\*$/);
  using folder = new TempDir();
  cpSync(new URL('CHANGELOG.md', root), join(folder.path, 'CHANGELOG.md'));
  const notesOf = (tag: string) => {
    const script = runs.find((run) => run.includes('notes.md')) ?? '';
    execFileSync('bash', ['-ec', script], { cwd: folder.path, env: { ...process.env, GITHUB_REF_NAME: tag } });
    return readFileSync(join(folder.path, 'notes.md'), 'utf8');
  };
  expect(notesOf(`v${manifest.version}`)).toMatch(/The first version\..*\n(.*\n)*- /);
  expect(() => notesOf('v9.9.9')).toThrow();
});

test('the image of v0.1.0 gets the tags 0.1.0, 0.1, 0 and latest, and an SBOM', () => {
  using folder = new TempDir();
  const steps = workflow('release.yml').jobs['image']?.steps ?? [];
  const script = steps.find(({ run = '' }) => run.includes('GITHUB_ENV'))?.run ?? '';
  const file = join(folder.path, 'env');
  const given = { GITHUB_REF_NAME: 'v0.1.0', GITHUB_REPOSITORY: 'Someone/rankd', GITHUB_ENV: file };
  execFileSync('bash', ['-ec', script], { env: { ...process.env, ...given } });
  const env = new Map(
    [...readFileSync(file, 'utf8').matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );
  const built = steps.find(({ uses = '' }) => uses.startsWith('docker/build-push-action@'))?.with;
  const tags = `${built?.['tags']}`.trim().replaceAll(/\$\{\{ env\.(\w+) \}\}/g, (_, name) => `${env.get(name)}`);
  const image = 'ghcr.io/someone/rankd';
  expect(tags.split('\n')).toEqual(['0.1.0', '0.1', '0', 'latest'].map((tag) => `${image}:${tag}`));
  expect(built).toMatchObject({ sbom: true, provenance: true });
});
