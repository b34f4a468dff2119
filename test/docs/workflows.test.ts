import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import manifest from '../../package.json' with { type: 'json' };

interface Step {
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
}

interface Job {
  'runs-on': string;
  strategy?: { matrix: { os: string[] } };
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
const systemsOf = ({ 'runs-on': system, strategy }: Job) => strategy?.matrix.os ?? [system];

describe.each(readdirSync(folder))('%s', (name) => {
  test('runs only scripts, commands and files that there are', () => {
    for (const { run = '', with: given = {} } of stepsOf(name)) {
      for (const [, script = ''] of run.matchAll(/\bnpm run ([\w-]+)/g))
        expect(manifest.scripts).toHaveProperty(script);
      if (run.startsWith('npx ')) expect(run).toMatch(new RegExp(`^npx (${Object.keys(manifest.bin).join('|')}) `));
      if (run.startsWith('.')) accessSync(new URL(run, root), constants.X_OK);
      if (given['file'] !== undefined) expect(existsSync(new URL(String(given['file']), root))).toBe(true);
    }
  });

  test('may only read, unless a job says more, and puts nothing that others write into a script', () => {
    const { on, permissions, jobs } = workflow(name);
    expect(permissions).toEqual({ contents: 'read' });
    expect(on).not.toHaveProperty('pull_request_target');
    for (const { run = '', uses = '' } of stepsOf(name)) {
      expect(run).not.toContain('${{');
      if (uses !== '') expect(uses).toMatch(/^(actions|docker)\/[\w-]+@v\d+$/);
    }
    if ('pull_request' in on) for (const job of Object.values(jobs)) expect(job.permissions).toBeUndefined();
  });
});

test('every push is checked by the command that README names and on PostgreSQL on Linux, and by a first rank change on Windows and macOS', () => {
  const { jobs } = workflow('ci.yml');
  const runs = Object.values(jobs).flatMap((job) =>
    systemsOf(job).map((system) => [system.split('-')[0], job.steps.map(({ run }) => run)] as const),
  );
  expect(Object.fromEntries(runs)).toEqual({
    ubuntu: expect.arrayContaining(['.ci/run', 'npm run test:postgres']),
    windows: expect.arrayContaining(['npm ci', 'npm run smoke']),
    macos: expect.arrayContaining(['npm ci', 'npm run smoke']),
  });
});

test('a release is published as it was checked, with provenance and without a token that is kept', () => {
  const { package: published, image } = workflow('release.yml').jobs;
  const runs = published?.steps.flatMap(({ run }) => run ?? []) ?? [];
  const publish = runs.findIndex((run) => run.startsWith('npm publish'));
  expect(runs[publish]).toContain('--provenance');
  const [checked, unscripted] = [runs.indexOf('.ci/run'), runs.indexOf('npm pkg delete scripts.prepare')];
  expect([checked >= 0, checked < unscripted, unscripted < publish]).toEqual([true, true, true]);
  expect(published?.permissions).toEqual({ contents: 'read', 'id-token': 'write' });
  expect(image).toMatchObject({ needs: 'package', permissions: { contents: 'read', packages: 'write' } });
  expect(readFileSync(new URL('release.yml', folder), 'utf8')).not.toMatch(/secrets\.(?!GITHUB_TOKEN)/);
});
