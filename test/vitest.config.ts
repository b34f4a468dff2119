import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

type TestOptions = NonNullable<TestProjectInlineConfiguration['test']>;

/** The tests in these folders start processes or wait for timers, and may take a minute. All others take seconds. */
const slow = /\/test\/(browser|e2e|environment|faults)\//;

/** Starts the slow files first. A slow file that started last would delay the end of the run. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files); // by duration in the last run, or by size in a fresh clone
    return sorted.toSorted((a, b) => Number(slow.test(b.moduleId)) - Number(slow.test(a.moduleId)));
  }
}

export const shared = {
  root: new URL('..', import.meta.url).pathname,
  globalSetup: ['test/support/temp-in-memory.ts', 'test/support/postgres-desk.ts'],
  // Many times longer than the longest test, so that no test fails because the machine is busy.
  testTimeout: 120_000,
  hookTimeout: 120_000,
  expect: { poll: { timeout: 20_000 } },
  maxWorkers: 6, // even on machines with fewer cores, because many tests wait for timers and child processes
  execArgv: ['--max-semi-space-size=64'], // saves a fifth of the time: short-lived daemons create much garbage
  isolate: false, // no test changes a module's state, so a worker loads modules once for many files
} satisfies TestOptions;

/** Makes the daemons in these tests store their data in PostgreSQL. */
export const onPostgres = { name: 'postgres', env: { RANKD_TEST_STORE: 'postgres' } } satisfies TestOptions;

/** These tests run on both engines, because their results can depend on the engine. */
const differing = [
  ...['idempotency', 'verify-key', 'ranker-check', 'rank-change', 'privileged-roles', 'suspensions', 'discord'].map(
    inHttp,
  ),
  ...['test/faults/undo.test.ts', 'test/faults/drifted-settings.test.ts', 'test/browser/owners-day.test.ts'],
];

function inHttp(name: string): string {
  return `test/http/${name}.test.ts`;
}

const { root, globalSetup, maxWorkers, ...ofProject } = shared;

export default defineConfig({
  test: {
    ...{ root, globalSetup, maxWorkers },
    sequence: { sequencer: SlowFirst },
    projects: [
      { test: { ...ofProject, root, name: 'sqlite', include: ['test/**/*.test.ts'] } },
      { test: { ...ofProject, root, ...onPostgres, include: differing } },
    ],
  },
});
