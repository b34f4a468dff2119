import { spawnSync } from 'node:child_process';
import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';

/**
 * `npm run fuzz -- --runs 100000`: runs the tests of hostile requests with many more requests than `npm test` does.
 * With `--races`, runs the test of two writers instead.
 */
const { runs, races } = new Command('npm run fuzz --')
  .description('Runs the tests that use random input, many more times than `npm test` does.')
  .option('--runs <n>', 'hostile requests in each test', wholeNumber(1, 100_000_000), 100_000)
  .option(
    '--races <n>',
    'run this many scenarios instead, in which a daemon and commands change the same members',
    wholeNumber(2, 1_000_000),
  )
  .parse()
  .opts<{ runs: number; races?: number }>();
const file = races === undefined ? 'test/attack/fuzz.test.ts' : 'test/environment/two-writers.test.ts';
const { status } = spawnSync('vitest', ['run', '--config', 'test/vitest.config.ts', file], {
  env: { ...process.env, ...(races === undefined ? { FUZZ_RUNS: String(runs) } : { RACE_RUNS: String(races) }) },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
