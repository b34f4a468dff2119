import { parseArgs } from 'node:util';
import { runCrashes } from './crash-run.ts';

/** `npm run crash -- --rounds 50`: kills the built daemon at work, again and again; ends with 1 where anything was lost. */
const { values } = parseArgs({
  options: { rounds: { type: 'string' }, kills: { type: 'string' }, seed: { type: 'string' } },
});
const { rounds = '50', kills = '2', seed = String(Date.now() % 2 ** 31) } = values;
const say = (line: string) => void process.stdout.write(`${line}\n`);

say(`${rounds} rounds of ${kills} kills each; the same again: --seed ${seed}`);
const report = await runCrashes({
  rounds: Number(rounds),
  killsPerRound: Number(kills),
  seed: Number(seed),
  say,
});
say('');
for (const [name, figure] of Object.entries(report)) say(`${name.padEnd(14)}${figure}`);
const { lost, doubled, stray, differing, unsettled, violations } = report;
process.exitCode = lost + doubled + stray + differing + unsettled + violations === 0 ? 0 : 1;
