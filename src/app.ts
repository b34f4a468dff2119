import { systemClock } from './clock.ts';
import type { Config } from './config/config.ts';
import type { HttpApp } from './http/server.ts';
import type { Logger } from './log.ts';
import { createPlatform } from './platforms/create-platform.ts';
import type { Clock, Ports } from './ports.ts';
import { openStore } from './stores/open-store.ts';
import { GroupView } from './usecases/group-view.ts';
import { MemberTurns } from './usecases/member-turns.ts';
import type { Ranking } from './usecases/ranking.ts';
import { RefusedCallers } from './usecases/refused-callers.ts';

export interface AppOptions {
  config: Config;
  /** Absolute path. */
  dataDir: string;
  /** Ports to use instead of those the configuration names; whoever gives one closes it. */
  overrides?: Partial<Ports>;
}

/** Everything that changing ranks needs, wired. Disposing it closes what it opened, last in, first out. */
export type RankingApp = Ranking & AsyncDisposable;

/** The application behind the CLI's commands. */
export async function openRanking(
  { config, dataDir, overrides = {} }: AppOptions,
  { isDaemon = false } = {},
): Promise<RankingApp> {
  await using opened = new AsyncDisposableStack();
  const clock: Clock = overrides.clock ?? systemClock;
  const store = overrides.store ?? (await openStore({ engine: 'sqlite', dataDir, clock }));
  if (overrides.store === undefined) opened.defer(() => store.close());
  const platform = overrides.platform ?? (await createPlatform({ config: config.platform, dataDir, clock }));
  if (overrides.platform === undefined) opened.defer(() => platform.close());
  const { breaker, ...policy } = config.policy;
  const closers = opened.move();
  return {
    store,
    platform,
    clock,
    policy,
    breaker: breaker.enabled ? breaker : undefined,
    group: new GroupView({ platform, clock, ladder: config.group.ladder }),
    deadlineMs: config.server.deadlineMs,
    isDaemon,
    turns: new MemberTurns(),
    inHand: new Set(),
    running: new Map(),
    [Symbol.asyncDispose]: () => closers.disposeAsync(),
  };
}

/** The application behind the HTTP API. */
export async function openApp(options: AppOptions & { log: Logger }): Promise<HttpApp & AsyncDisposable> {
  const { log, config } = options;
  const ranking = await openRanking(options, { isDaemon: true });
  return { ...ranking, log, limits: config.limits, refused: new RefusedCallers(), isDraining: false, inFlight: 0 };
}
