import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';
import { runChaos } from './chaos-run.ts';
import { runCrashes } from './crash-run.ts';

/**
 * `npm run crash -- --rounds 50`, or with `--engine postgres --nodes 3`: repeatedly kills the built daemon under load;
 * exits with 1 if the records are inconsistent.
 */
const { rounds, kills, sideBySide, seed, engine, nodes } = new Command('npm run crash --')
  .description('Repeatedly kills the built daemon under load; exits with 1 if anything was lost.')
  .option('--rounds <n>', 'how many', wholeNumber(1, 1_000_000), 50)
  .option(
    '--kills <n>',
    'kills per round, before open changes are reconciled and the records are compared',
    wholeNumber(1, 1_000),
    2,
  )
  .option(
    '--side-by-side <n>',
    'groups, each with its own daemons, that run the rounds in parallel',
    wholeNumber(1, 100),
    4,
  )
  .option(
    '--engine <name>',
    'sqlite, or postgres, where daemons and PostgreSQL are killed, suspended and disconnected',
    'sqlite',
  )
  .option('--nodes <n>', 'with postgres: how many daemons share a database', wholeNumber(1, 20), 3)
  .option('--seed <n>', 'repeats the load of an earlier run', wholeNumber(0, 2 ** 31), Date.now() % 2 ** 31)
  .parse()
  .opts<{ rounds: number; kills: number; sideBySide: number; seed: number; engine: string; nodes: number }>();
const print = (line: string) => void process.stdout.write(`${line}\n`);

print(`${rounds} rounds; to repeat them: --seed ${seed}`);
const report =
  engine === 'postgres'
    ? await runChaos({
        rounds,
        sideBySide,
        nodes,
        faultCount: kills + 1,
        maxFaultMs: 15_000,
        maxAnswerMs: 2_000,
        seed,
        print,
      })
    : await runCrashes({ rounds, killsPerRound: kills, sideBySide, seed, print });
print('');
for (const [name, figure] of Object.entries(report)) print(`${name.padEnd(14)}${figure}`);
const { lost, doubled, stray, differing, unreconciled, violations } = report;
process.exitCode = lost + doubled + stray + differing + unreconciled + violations === 0 ? 0 : 1;
