import { Command, InvalidArgumentError, Option } from 'commander';
import { wholeNumber } from '../src/cli/input/arguments.ts';

export interface BenchOptions<Name extends string> {
  rounds: number;
  only: Set<Name>;
  write: boolean;
  json: boolean;
}

/** With fewer rounds, the medians vary too much. */
const fewestRounds = 5;

/** Throws `CommanderError` after printing an error or the help text. */
export function benchOptions<Name extends string>(line: string[], names: readonly Name[]): BenchOptions<Name> {
  const only = (given: string) => new Set(given.split(',').map((name) => findPart(name, names)));
  return new Command('npm run bench --')
    .description('Measures rankd against its baselines; exits with 1 if a goal is missed.')
    .option('--rounds <n>', 'number of rounds', wholeNumber(fewestRounds, 10_000), 30)
    .addOption(
      new Option('--only <parts>', `some of ${names.join()}`).argParser(only).default(new Set(names), 'all of them'),
    )
    .option('--write', 'store each part in bench/results.json and bench/README.md as it ends', false)
    .option('--json', 'print one JSON document instead of the table', false)
    .exitOverride()
    .parse(line, { from: 'user' })
    .opts<BenchOptions<Name>>();
}

function findPart<Name extends string>(given: string, names: readonly Name[]): Name {
  const name = names.find((one) => one === given);
  if (name === undefined) throw new InvalidArgumentError(`There is no part ${given}.`);
  return name;
}
