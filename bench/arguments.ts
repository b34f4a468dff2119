import { parseArgs } from 'node:util';

export interface BenchOptions<Name extends string> {
  rounds: number;
  only: Set<Name>;
  /** The whole run is kept, here and in README. */
  write: boolean;
  /** One JSON document instead of the table. */
  json: boolean;
}

/** Fewer say too little: a median of them is a matter of luck. */
const fewestRounds = 5;

/** What the command line asks for. Throws an error whose message says what is wrong with it. */
export function benchOptions<Name extends string>(line: string[], names: readonly Name[]): BenchOptions<Name> {
  const { values } = parseArgs({
    args: line,
    options: {
      rounds: { type: 'string', default: '30' },
      only: { type: 'string', default: names.join() },
      write: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const rounds = Number(values.rounds);
  if (!(Number.isInteger(rounds) && rounds >= fewestRounds)) {
    throw new Error(`--rounds ${values.rounds}: expected a whole number from ${fewestRounds}`);
  }
  const only = new Set(values.only.split(',').map((given) => known(given, names)));
  if (values.write && only.size < names.length) throw new Error('--write keeps whole runs; leave out --only');
  return { rounds, only, write: values.write, json: values.json };
}

function known<Name extends string>(given: string, names: readonly Name[]): Name {
  const name = names.find((one) => one === given);
  if (name === undefined)
    throw new Error(`--only ${given}: expected some of ${names.join(', ')}, with commas between them`);
  return name;
}
