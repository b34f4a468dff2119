import { parseArgs } from 'node:util';

export interface BenchOptions<Name extends string> {
  rounds: number;
  /** Of each load. */
  seconds: number;
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
      rounds: { type: 'string', default: String(fewestRounds) },
      seconds: { type: 'string', default: '3' },
      only: { type: 'string', default: names.join() },
      write: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
    },
  });
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  if (!(Number.isInteger(rounds) && rounds >= fewestRounds)) {
    throw new Error(`--rounds ${values.rounds}: expected a whole number from ${fewestRounds}`);
  }
  if (!(seconds > 0 && seconds <= 600))
    throw new Error(`--seconds ${values.seconds}: expected a number above 0, up to 600`);
  const only = new Set(values.only.split(',').map((given) => known(given, names)));
  if (values.write && only.size < names.length) throw new Error('--write keeps whole runs; leave out --only');
  return { rounds, seconds, only, write: values.write, json: values.json };
}

function known<Name extends string>(given: string, names: readonly Name[]): Name {
  const name = names.find((one) => one === given);
  if (name === undefined)
    throw new Error(`--only ${given}: expected some of ${names.join(', ')}, with commas between them`);
  return name;
}
