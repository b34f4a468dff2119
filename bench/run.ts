import { CommanderError } from 'commander';
import { type BenchOptions, benchOptions } from './arguments.ts';
import { type Finding, isReached, tableOf } from './findings.ts';
import { machine } from './machine.ts';
import { commands } from './measures/commands.ts';
import { limit } from './measures/limit.ts';
import { memory } from './measures/memory.ts';
import { packed } from './measures/package.ts';
import { postgres } from './measures/postgres.ts';
import { ranker } from './measures/ranker.ts';
import { scale } from './measures/scale.ts';
import { search } from './measures/search.ts';
import { verify } from './measures/verify.ts';
import { webhooks } from './measures/webhooks.ts';
import { publish } from './publish.ts';

/** `npm run bench`: measures rankd against what bounds it, and prints the table. `--write` also keeps it, here and in README.md beside it. */
const measures = { commands, verify, ranker, webhooks, limit, postgres, memory, scale, search, package: packed };

type Name = keyof typeof measures;
const say = (line: string) => void process.stdout.write(`${line}\n`);

const options = asked();
if (options !== undefined) process.exitCode = await bench(options);

/** `undefined` where there is nothing to measure; then it has been said why. */
function asked(): BenchOptions<Name> | undefined {
  try {
    return benchOptions(process.argv.slice(2), Object.keys(measures) as Name[]);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? 0 : 2;
    return undefined;
  }
}

/** 0 where every goal is reached, else 1. */
async function bench({ only, write, json, ...options }: BenchOptions<Name>): Promise<number> {
  const conditions = machine();
  if (!json) for (const [name, value] of Object.entries(conditions)) say(`${name}: ${value}`);
  const findings: Finding[] = [];
  for (const name of Object.keys(measures) as Name[]) {
    if (!only.has(name)) continue;
    process.stderr.write(`${name} …\n`);
    findings.push(...(await measures[name](options)));
  }
  const lines = json ? [JSON.stringify({ conditions, findings }, null, 2)] : ['', ...tableOf(findings)];
  for (const line of lines) say(line);
  if (write) publish({ conditions, findings });
  return findings.every(isReached) ? 0 : 1;
}
