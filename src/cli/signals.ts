import type { System } from '../base/system.ts';

/** Handles signals to this process: they end a command, stop a daemon, and make a daemon reload its configuration. */
export class Signals {
  readonly #exit: (code: number) => void;
  readonly #stop = Promise.withResolvers<string>();
  #stage: 'command' | 'serving' | 'stopping' = 'command';
  #reload: (() => void) | undefined;

  /** `isTerminalGone`: whether it was started on a terminal that has been closed since. */
  constructor(
    process: { on(signal: NodeJS.Signals, listener: () => void): unknown; exit(code: number): void },
    { stopSignals, hangUp }: Pick<System, 'stopSignals' | 'hangUp'>,
    isTerminalGone: () => boolean,
  ) {
    this.#exit = (code) => process.exit(code);
    for (const signal of stopSignals) process.on(signal, () => this.stopOn(signal));
    process.on('SIGHUP', () => {
      if (this.#stage === 'command') return this.#exit(129);
      // A terminal that is closed sends the same signal; then no one can stop the daemon by hand.
      if (hangUp === 'stop' || isTerminalGone()) this.#stopWith('SIGHUP');
      else this.#reload?.();
    });
  }

  /**
   * Resolves with the name of the first signal that asks to stop. Once a command calls this, signals no longer end the
   * process.
   */
  get stop(): Promise<string> {
    this.#stage = 'serving';
    return this.#stop.promise;
  }

  get isStopping(): boolean {
    return this.#stage === 'stopping';
  }

  /** True while a daemon serves, so that a signal can ask it to reload its configuration. */
  get hasReload(): boolean {
    return this.#reload !== undefined;
  }

  onReload(listener: () => void): void {
    this.#reload = listener;
  }

  /**
   * A command that does not wait for the signal ends at once, and so does any command at a second signal: open changes
   * are reconciled later.
   */
  stopOn(signal: NodeJS.Signals): void {
    if (this.#stage === 'serving') this.#stopWith(signal);
    else this.#exit(130);
  }

  #stopWith(signal: NodeJS.Signals): void {
    this.#stage = 'stopping';
    this.#stop.resolve(signal);
  }
}
