import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

/** `npm run fuzz -- --runs 100000`: the fuzz tests with that many requests each, instead of the few of every test run. */
const { values } = parseArgs({ options: { runs: { type: 'string', default: '100000' } } });
const { status } = spawnSync('vitest', ['run', '--config', 'test/vitest.config.ts', 'test/attack/fuzz.test.ts'], {
  env: { ...process.env, FUZZ_RUNS: values.runs },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
