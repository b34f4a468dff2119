import { parseArgs } from 'node:util';
import { runCrashes } from './crash-run.ts';

/** `npm run crash -- --rounds 50`: kills the built daemon at work, again and again; ends with 1 where anything was lost. */
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '50' },
    /** How often a daemon is killed before what it left is settled and compared. */
    kills: { type: 'string', default: '2' },
    /** How many daemons, each with a group of its own, share the rounds. */
    'side-by-side': { type: 'string', default: '4' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
});
const { rounds, kills, seed } = values;
const say = (line: string) => void process.stdout.write(`${line}\n`);

say(`${rounds} rounds of ${kills} kills each; the same again: --seed ${seed}`);
const report = await runCrashes({
  rounds: Number(rounds),
  killsPerRound: Number(kills),
  sideBySide: Number(values['side-by-side']),
  seed: Number(seed),
  say,
});
say('');
for (const [name, figure] of Object.entries(report)) say(`${name.padEnd(14)}${figure}`);
const { lost, doubled, stray, differing, unsettled, violations } = report;
process.exitCode = lost + doubled + stray + differing + unsettled + violations === 0 ? 0 : 1;
