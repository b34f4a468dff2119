import { Command } from 'commander';
import { wholeNumber } from '../../src/cli/input/arguments.ts';
import { startPostgres } from '../support/postgres.ts';
import { runRevocations } from './revocation-run.ts';

/**
 * `npm run revocation`: revokes keys while several daemons on one PostgreSQL server are under load. Exits with 1 if a
 * request sent after a revocation gets a response other than 401.
 */
const { daemons, requests } = new Command('npm run revocation --')
  .description(
    'Revokes keys under load at several daemons on one PostgreSQL; exits with 1 if one was accepted afterwards.',
  )
  .option('--daemons <n>', 'how many', wholeNumber(1, 20), 3)
  .option('--requests <n>', 'how many requests begin after a revocation', wholeNumber(1, 10_000_000), 10_000)
  .parse()
  .opts<{ daemons: number; requests: number }>();

await using server = await startPostgres();
const url = `postgres://${server.user}@127.0.0.1:${server.port}/postgres`;
const print = (line: string) => void process.stdout.write(`${line}\n`);
const report = await runRevocations({ daemons, env: { RANKD_STORE_URL: url }, wanted: requests, print });
print('');
for (const [name, figure] of Object.entries(report)) print(`${name.padEnd(14)}${figure}`);
process.exitCode = report.accepted === 0 && report.others === 0 ? 0 : 1;
