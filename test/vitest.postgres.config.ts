import { defineConfig } from 'vitest/config';
import { onPostgres, shared } from './vitest.config.ts';

/**
 * `npm run test:postgres`: runs the tests for HTTP, faults and rank changes, and the model tests, with daemons on
 * PostgreSQL. `npm test` runs only those whose results can depend on the engine.
 */
export default defineConfig({
  test: {
    ...shared,
    ...onPostgres,
    ...{ testTimeout: 240_000, hookTimeout: 600_000 }, // a minute on the manual clock takes hundreds of round trips
    include: [
      ...['test/http/**/*.test.ts', 'test/faults/**/*.test.ts', 'test/usecases/change/**/*.test.ts'],
      'test/e2e/model.test.ts',
      'test/usecases/holds/undo-model.test.ts',
    ],
  },
});
