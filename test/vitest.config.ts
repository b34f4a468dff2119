import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

type TestOptions = NonNullable<TestProjectInlineConfiguration['test']>;

/** The tests that run longest, and those that wait longest. */
const longest = [
  ...['faults/fault-matrix', 'e2e/stopped-node', 'browser/dashboard', 'faults/pacing', 'environment/suspension'],
  ...['faults/holds', 'e2e/suspension', 'e2e/chaos', 'e2e/crash', 'e2e/nodes', 'game/client', 'e2e/golden'],
  ...['e2e/names', 'environment/rank-list', 'environment/undo', 'stores/postgres/nodes'],
].map((name) => `/test/${name}.test.ts`);

/** Vitest knows how long each file took last time, but not in a fresh clone. A long file that starts last is waited for alone. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const found = longest.findIndex((name) => moduleId.endsWith(name));
      return found === -1 ? longest.length : found;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}

export const shared = {
  root: new URL('..', import.meta.url).pathname,
  globalSetup: ['test/support/temp-in-memory.ts', 'test/support/postgres-desk.ts'],
  // Many times what the longest takes: no test fails because the machine is busy.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 20_000 } },
  maxWorkers: 4,
  isolate: false, // no test leaves anything in a module: a worker for many files saves loading them again for each
} satisfies TestOptions;

/** The daemons of tests keep their data in PostgreSQL. */
export const onPostgres = { name: 'postgres', env: { RANKD_TEST_STORE: 'postgres' } } satisfies TestOptions;

/** Of the tests that a daemon on either engine has to pass, those where the engine has a part in the answer. */
const differing = [
  ...['idempotency', 'verify-key', 'ranker-check', 'rank-change', 'privileged-roles', 'suspensions', 'discord'].map(
    inHttp,
  ),
  ...['test/faults/undo.test.ts', 'test/faults/drifted-settings.test.ts'],
];

function inHttp(name: string): string {
  return `test/http/${name}.test.ts`;
}

const { root, globalSetup, maxWorkers, ...ofProject } = shared;

export default defineConfig({
  test: {
    ...{ root, globalSetup, maxWorkers },
    sequence: { sequencer: LongestFirst },
    projects: [
      { test: { ...ofProject, root, name: 'sqlite', include: ['test/**/*.test.ts'] } },
      { test: { ...ofProject, root, ...onPostgres, include: differing } },
    ],
  },
});
