import { CommanderError } from 'commander';
import { type BenchOptions, benchOptions } from './arguments.ts';
import { isReached, rowOf, tableHead } from './findings.ts';
import { FullDatabase } from './full-database.ts';
import { machine } from './machine.ts';
import { commands } from './measures/commands.ts';
import { discord } from './measures/discord.ts';
import { limit } from './measures/limit.ts';
import { memory } from './measures/memory.ts';
import { nodes } from './measures/nodes.ts';
import { packed } from './measures/package.ts';
import { postgres } from './measures/postgres.ts';
import { ranker } from './measures/ranker.ts';
import { scale } from './measures/scale.ts';
import { search } from './measures/search.ts';
import { verify } from './measures/verify.ts';
import { webhooks } from './measures/webhooks.ts';
import { publish, published, type Results, withPart } from './publish.ts';

/**
 * `npm run bench`: measures rankd against baselines, and prints a table. `--write` also stores the results in
 * results.json and the README.
 */
const measures = {
  commands,
  verify,
  ranker,
  webhooks,
  discord,
  limit,
  postgres,
  nodes,
  memory,
  search,
  scale,
  package: packed,
};

type Name = keyof typeof measures;
const names = Object.keys(measures) as Name[];
const printLine = (line: string) => void process.stdout.write(`${line}\n`);
const printToStderr = (line: string) => void process.stderr.write(`${line}\n`);

const options = parseOptions();
if (options !== undefined) process.exitCode = await bench(options);

/** Returns `undefined` after printing an error or the help text. */
function parseOptions(): BenchOptions<Name> | undefined {
  try {
    return benchOptions(process.argv.slice(2), names);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? 0 : 2;
    return undefined;
  }
}

/**
 * Returns the exit code: 0 if every goal is met, otherwise 1. Prints each part as it ends, and also stores it if
 * `write` is set, so that a stopped run loses only the part in progress.
 */
async function bench({ only, write, json, rounds }: BenchOptions<Name>): Promise<number> {
  await using database = new FullDatabase();
  const found: Results = { conditions: machine(), parts: {} };
  const report = json ? printToStderr : printLine;
  for (const [name, value] of Object.entries(found.conditions)) report(`${name}: ${value}`);
  for (const line of ['', ...tableHead]) report(line);
  for (const name of names) {
    if (!only.has(name)) continue;
    const beganAt = performance.now();
    const findings = await measures[name]({ rounds, database });
    found.parts[name] = findings;
    for (const finding of findings) report(rowOf(finding));
    if (write) publish(withPart(published().results, found, names));
    printToStderr(`${name}: ${((performance.now() - beganAt) / 60_000).toFixed(1)} minutes`);
  }
  if (json) printLine(JSON.stringify(found, null, 2));
  return Object.values(found.parts).flat().every(isReached) ? 0 : 1;
}
