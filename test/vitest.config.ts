import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

type TestOptions = NonNullable<TestProjectInlineConfiguration['test']>;

export const shared = {
  root: new URL('..', import.meta.url).pathname,
  globalSetup: ['test/support/temp-in-memory.ts', 'test/support/postgres-desk.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 20_000 } },
  maxWorkers: 4,
  isolate: false, // no test leaves anything in a module: a worker for many files saves loading them anew for each
} satisfies TestOptions;

/** The daemons of tests keep their data in PostgreSQL. */
export const onPostgres = { name: 'postgres', env: { RANKD_TEST_STORE: 'postgres' } } satisfies TestOptions;

/** Of the tests that a daemon on either engine has to pass, those where the engine has a part in the answer. */
const differing = [
  ...['idempotency', 'verify-key', 'ranker-check', 'rank-change', 'privileged-roles', 'suspensions'].map(inHttp),
  'test/faults/undo.test.ts',
];

function inHttp(name: string): string {
  return `test/http/${name}.test.ts`;
}

const { root, globalSetup, maxWorkers, ...ofProject } = shared;

export default defineConfig({
  test: {
    ...{ root, globalSetup, maxWorkers },
    projects: [
      { test: { ...ofProject, root, name: 'sqlite', include: ['test/**/*.test.ts'] } },
      { test: { ...ofProject, root, ...onPostgres, include: differing } },
    ],
  },
});
