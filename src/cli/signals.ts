import type { System } from '../base/system.ts';

/** Handles signals: they end a command, stop a daemon, or make a daemon reload its configuration. */
export class Signals {
  readonly #exit: (code: number) => void;
  readonly #stop = Promise.withResolvers<string>();
  #stage: 'command' | 'serving' | 'stopping' = 'command';
  #reload: (() => void) | undefined;

  /** `isTerminalGone`: true if the process's terminal has been closed. */
  constructor(
    process: { on(signal: NodeJS.Signals, listener: () => void): unknown; exit(code: number): void },
    { stopSignals, hangUp }: Pick<System, 'stopSignals' | 'hangUp'>,
    isTerminalGone: () => boolean,
  ) {
    this.#exit = (code) => process.exit(code);
    for (const signal of stopSignals) process.on(signal, () => this.stopOn(signal));
    process.on('SIGHUP', () => {
      if (this.#stage === 'command') return this.#exit(129);
      // a closed terminal also sends SIGHUP; the daemon then stops, because Ctrl-C can no longer reach it
      if (hangUp === 'stop' || isTerminalGone()) this.#stopWith('SIGHUP');
      else this.#reload?.();
    });
  }

  /** Resolves with the first stop signal. Once this has been accessed, the first signal no longer ends the process. */
  get stop(): Promise<string> {
    this.#stage = 'serving';
    return this.#stop.promise;
  }

  get isStopping(): boolean {
    return this.#stage === 'stopping';
  }

  /** True once this process has started a daemon, which a signal can ask to reload its configuration. */
  get hasReload(): boolean {
    return this.#reload !== undefined;
  }

  onReload(listener: () => void): void {
    this.#reload = listener;
  }

  /**
   * Resolves `stop`. At a second signal, or if no code waits for `stop`, ends the process immediately; open changes are
   * reconciled later.
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
