import type { RankingApp } from '../app.ts';
import { askLook } from '../control/ask.ts';
import { withLateLooks } from '../usecases/change/late-look.ts';
import type { Cli } from './cli.ts';

/**
 * Runs work that changes ranks, and sees to it that they are read once more: by the daemon of the data directory, or else here, before
 * the answer is printed. A signal ends the wait for that.
 */
export function whileLooking<T>(cli: Cli, app: RankingApp, work: () => Promise<T>): Promise<T> {
  const stopping = new AbortController();
  void cli.io.stopSignal.then(() => stopping.abort());
  const handOver = async (changeId: string) => {
    if (await askLook(cli.dataDir, changeId)) return true;
    if (app.platform.readLagMs > 0 && !stopping.signal.aborted) cli.say(lookingAgain(app.platform.readLagMs));
    return false;
  };
  return withLateLooks(app, { stop: stopping.signal, handOver }, work);
}

function lookingAgain(ms: number): string {
  return `Roblox says that it is done. No daemon runs here that could read it once more, so this command does, in ${ms / 1000} s.`;
}
