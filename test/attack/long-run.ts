import { spawnSync } from 'node:child_process';
import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';

/** `npm run fuzz -- --runs 100000`: the fuzz tests with that many requests each, instead of the few of every test run. */
const { runs } = new Command('npm run fuzz --')
  .description('The fuzz tests with more requests than every test run has.')
  .option('--runs <n>', 'requests of each', wholeNumber(1, 100_000_000), 100_000)
  .parse()
  .opts<{ runs: number }>();
const { status } = spawnSync('vitest', ['run', '--config', 'test/vitest.config.ts', 'test/attack/fuzz.test.ts'], {
  env: { ...process.env, FUZZ_RUNS: String(runs) },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
