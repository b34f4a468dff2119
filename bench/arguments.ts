import { Command, InvalidArgumentError, Option } from 'commander';
import { wholeNumber } from '../src/cli/input/arguments.ts';

export interface BenchOptions<Name extends string> {
  rounds: number;
  only: Set<Name>;
  /** What was found is kept, here and in README.md beside it. */
  write: boolean;
  /** One JSON document instead of the table. */
  json: boolean;
}

/** Fewer say too little: a median of them is a matter of luck. */
const fewestRounds = 5;

/** What the command line asks for. Throws `CommanderError` where it can't be understood or asks for help, once that is said. */
export function benchOptions<Name extends string>(line: string[], names: readonly Name[]): BenchOptions<Name> {
  const only = (given: string) => new Set(given.split(',').map((name) => known(name, names)));
  return new Command('npm run bench --')
    .description('Measures rankd against what bounds it; ends with 1 where a figure is not reached.')
    .option('--rounds <n>', 'how many', wholeNumber(fewestRounds, 10_000), 30)
    .addOption(
      new Option('--only <parts>', `some of ${names.join()}`).argParser(only).default(new Set(names), 'all of them'),
    )
    .option('--write', 'keep each part in bench/results.json and bench/README.md as it ends', false)
    .option('--json', 'one JSON document instead of the table', false)
    .exitOverride()
    .parse(line, { from: 'user' })
    .opts<BenchOptions<Name>>();
}

function known<Name extends string>(given: string, names: readonly Name[]): Name {
  const name = names.find((one) => one === given);
  if (name === undefined) throw new InvalidArgumentError(`There is no part ${given}.`);
  return name;
}
