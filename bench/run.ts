import { parseArgs } from 'node:util';
import { type Finding, isReached, tableOf } from './findings.ts';
import { machine } from './machine.ts';
import { commands } from './measures/commands.ts';
import { memory } from './measures/memory.ts';
import { packed } from './measures/package.ts';
import { ranker } from './measures/ranker.ts';
import { scale } from './measures/scale.ts';
import { verify } from './measures/verify.ts';
import { publish } from './publish.ts';

/** `npm run bench`: measures rankd against what bounds it, and prints the table. `--write` also keeps it, here and in README. */
const measures = { commands, verify, ranker, memory, scale, package: packed };

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    /** Of each load. */
    seconds: { type: 'string', default: '3' },
    /** Names of measures, with commas between them. */
    only: { type: 'string', default: Object.keys(measures).join() },
    write: { type: 'boolean', default: false },
  },
});
const options = { rounds: Number(values.rounds), seconds: Number(values.seconds) };
const chosen = new Set(values.only.split(','));
for (const name of chosen) if (!(name in measures)) throw new Error(`there is no measure ${name}`);
if (values.write && chosen.size < Object.keys(measures).length) throw new Error('--write keeps whole runs only');
const say = (line: string) => void process.stdout.write(`${line}\n`);

const conditions = machine();
for (const [name, value] of Object.entries(conditions)) say(`${name}: ${value}`);
const findings: Finding[] = [];
for (const [name, measure] of Object.entries(measures)) {
  if (!chosen.has(name)) continue;
  process.stderr.write(`${name} …\n`);
  findings.push(...(await measure(options)));
}
for (const line of ['', ...tableOf(findings)]) say(line);
if (values.write) publish({ conditions, findings });
process.exitCode = findings.every(isReached) ? 0 : 1;
