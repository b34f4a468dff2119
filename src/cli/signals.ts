import type { System } from '../base/system.ts';

export class Signals {
  readonly #exit: (code: number) => void;
  readonly #stop = Promise.withResolvers<string>();
  #stage: 'command' | 'serving' | 'stopping' = 'command';
  #reload: (() => void) | undefined;

  constructor(
    process: { on(signal: NodeJS.Signals, listener: () => void): unknown; exit(code: number): void },
    { stopSignals, hangUp }: Pick<System, 'stopSignals' | 'hangUp'>,
    isTerminalGone: () => boolean,
  ) {
    this.#exit = (code) => process.exit(code);
    for (const signal of stopSignals) process.on(signal, () => this.stopOn(signal));
    process.on('SIGHUP', () => {
      if (this.#stage === 'command') return this.#exit(129);
      // closing the terminal also sends SIGHUP; the daemon then stops, because Ctrl-C can no longer reach it
      if (hangUp === 'stop' || isTerminalGone()) this.#stopWith('SIGHUP');
      else this.#reload?.();
    });
  }

  /** Resolves with the first stop signal. Until a caller reads this property, that signal ends the process instead. */
  get stop(): Promise<string> {
    this.#stage = 'serving';
    return this.#stop.promise;
  }

  get isStopping(): boolean {
    return this.#stage === 'stopping';
  }

  /** True once a daemon is running in this process. */
  get hasReload(): boolean {
    return this.#reload !== undefined;
  }

  onReload(listener: () => void): void {
    this.#reload = listener;
  }

  /**
   * Resolves `stop`. Ends the process immediately on a second signal, or if no code is waiting for `stop`; rankd
   * reconciles open changes later.
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
