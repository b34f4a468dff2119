import { isRankdError } from '../base/errors.ts';
import type { DaemonContext, LiveContext } from '../usecases/daemon-context.ts';
import { endDueHolds } from '../usecases/holds/end-holds.ts';
import { sweepHolds } from '../usecases/holds/sweep-holds.ts';
import { WallClock } from '../usecases/holds/wall-clock.ts';

/** Ends suspensions and temporary ranks as they fall due. Call `endDue` every few seconds, and `sweep` every few minutes. */
export class HoldWorker {
  readonly #live: LiveContext;
  readonly #stop: AbortSignal;
  readonly #wallClock: WallClock;
  /** The context of the last round with a working credential: after a reload or a new key, the obstacle may be gone. */
  #seen: DaemonContext | undefined;

  constructor(live: LiveContext, stop: AbortSignal) {
    this.#live = live;
    this.#stop = stop;
    this.#wallClock = new WallClock(live.current.clock);
  }

  async endDue(): Promise<void> {
    const app = this.#live.current;
    const { isSteady, jumpedMs } = this.#wallClock.look();
    if (jumpedMs !== undefined) app.log.warn({ jumpedMs, problem: 'clock' }, sentenceOf(jumpedMs));
    if (!isSteady) return;
    const retryNow = this.#seen !== app;
    this.#seen = app.deadCredential() === undefined ? app : undefined;
    if (this.#seen === undefined) return;
    const report = ({ id, tries }: { id: string; tries: number }, error: Error) => {
      if (tries === 0)
        app.log.warn({ err: error, holdId: id }, 'a suspension or temporary rank cannot be ended yet; trying again');
    };
    await endDueHolds(app, { retryNow, stop: this.#stop, report });
  }

  async sweep(): Promise<void> {
    await sweepHolds(this.#live.current, this.#stop).catch((error) => {
      if (!isRankdError(error)) throw error; // the next sweep retries
    });
  }
}

function sentenceOf(jumpedMs: number): string {
  return jumpedMs > 0
    ? 'the clock of this machine jumped forward; no suspension ends until it has gone steadily for 10 minutes'
    : 'the clock of this machine was set back; suspensions last longer by as much';
}
