import { systemClock } from './clock.ts';
import type { Config } from './config/config.ts';
import { newId } from './core/api-key.ts';
import type { HttpApp } from './http/server.ts';
import type { Logger } from './log.ts';
import { createPlatform } from './platforms/create-platform.ts';
import { CredentialBreaker } from './platforms/credential-breaker.ts';
import type { Ports } from './ports.ts';
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
export async function openRanking(options: AppOptions): Promise<RankingApp> {
  const ports = await openPorts(options);
  return { ...rankingOf(options.config, ports), isDaemon: false, holder: newId('cli') };
}

/** The application behind the HTTP API. */
export async function openApp(options: AppOptions & { log: Logger }): Promise<HttpApp & AsyncDisposable> {
  const { log, config } = options;
  const ports = await openPorts(options);
  const platform = new CredentialBreaker({
    ...ports,
    report: (dead) => {
      if (dead === undefined) log.info('the platform key works again');
      else log.error({ hint: dead.hint }, dead.message);
    },
  });
  return {
    ...rankingOf(config, { ...ports, platform }),
    isDaemon: true,
    holder: newId('daemon'),
    log,
    limits: config.limits,
    refused: new RefusedCallers(),
    deadCredential: () => platform.dead,
    isDraining: false,
    inFlight: 0,
  };
}

async function openPorts({ config, dataDir, overrides = {} }: AppOptions): Promise<Ports & AsyncDisposable> {
  await using opened = new AsyncDisposableStack();
  const clock = overrides.clock ?? systemClock;
  const store = overrides.store ?? (await openStore({ engine: 'sqlite', dataDir, clock }));
  if (overrides.store === undefined) opened.defer(() => store.close());
  const platform = overrides.platform ?? (await createPlatform({ config: config.platform, dataDir, clock }));
  if (overrides.platform === undefined) opened.defer(() => platform.close());
  const closers = opened.move();
  return { store, platform, clock, [Symbol.asyncDispose]: () => closers.disposeAsync() };
}

function rankingOf(config: Config, ports: Ports & AsyncDisposable): Omit<RankingApp, 'isDaemon' | 'holder'> {
  const { breaker, ...policy } = config.policy;
  return {
    ...ports,
    policy,
    breaker: breaker.enabled ? breaker : undefined,
    group: new GroupView({ ...ports, ladder: config.group.ladder }),
    deadlineMs: config.server.deadlineMs,
    turns: new MemberTurns(),
    inHand: new Set(),
    running: new Map(),
  };
}
