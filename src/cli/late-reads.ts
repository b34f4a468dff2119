import type { RankingApp } from '../app.ts';
import { askLateRead } from '../control/ask.ts';
import type { RankChange } from '../core/model.ts';
import { withLateReads } from '../usecases/change/late-read.ts';
import type { Cli } from './cli.ts';

/**
 * Runs `work`, which changes ranks, and verifies each change with a later read. Hands the reads of applied changes over
 * to the data directory's daemon until it declines one or a refused change comes first. This command makes the rest
 * before it prints the result, unless a stop signal skips them.
 */
export function withVerification<T>(cli: Cli, app: RankingApp, work: () => Promise<T>): Promise<T> {
  const stopping = new AbortController();
  void cli.io.stopSignal.then(() => stopping.abort());
  const handOver = async ({ id, state }: RankChange) => {
    const isApplied = state === 'applied';
    if (isApplied && (await askLateRead(cli.dataDir, id))) return true;
    if (app.platform.readLagMs === 0 || stopping.signal.aborted) return false;
    const inTime = `in ${app.platform.readLagMs / 1000} s`;
    if (!isApplied) cli.say(`${reportedAsRefused} ${inTime}.`);
    else
      cli.say(
        `Roblox reports success. This command reads the member again ${inTime}, because ${whyHere(await cli.servedBy(app))}.`,
      );
    return false;
  };
  return withLateReads(app, { stop: stopping.signal, handOver }, work);
}

function whyHere(daemons: 'silent' | string[]): string {
  if (daemons === 'silent') return 'the daemon of this data directory does not';
  return daemons.length === 0 ? 'no daemon is running' : 'the daemons of this database have other data directories';
}

const reportedAsRefused =
  "Roblox refused the change, but a read can't show yet whether it was made anyway. This command reads the member again";
