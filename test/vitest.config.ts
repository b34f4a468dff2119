import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/postgres-desk.ts'],
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    maxWorkers: 4,
    isolate: false, // no test leaves anything in a module: a worker for many files saves loading them anew for each
  },
});
