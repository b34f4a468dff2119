import { type Clock, systemClock } from './base/clock.ts';
import { type Closer, closeAll, openAll } from './base/close-all.ts';
import { LatestWrites } from './base/latest-writes.ts';
import type { Logger } from './base/log.ts';
import { crypto } from './base/node-modules.ts';
import { Surprises } from './base/surprises.ts';
import type { Config, OpenCloudConfig } from './config/config.ts';
import { groupTitle } from './core/group-title.ts';
import { isSameEntry, roleEntries } from './core/role-settings.ts';
import { createPlatform } from './platforms/create-platform.ts';
import { CredentialBreaker } from './platforms/credential-breaker.ts';
import type { LiveCheckOptions } from './platforms/live-check.ts';
import type { Instrumentation, LiveFinding, OpenOptions, Platform, Ports, WebhookSender } from './ports/index.ts';
import { engineOf } from './stores/engine.ts';
import { MemberTurns } from './usecases/change/member-turns.ts';
import { type Alarm, PlatformTrust } from './usecases/change/platform-trust.ts';
import type { Ranking } from './usecases/change/ranking.ts';
import type { DaemonContext, LiveContext } from './usecases/daemon-context.ts';
import { rolesRecorder } from './usecases/group/cached-read.ts';
import { GroupView } from './usecases/group/group-view.ts';
import { refuseDefaultSimulation } from './usecases/group/served-group.ts';
import { GameModules, KeyUses } from './usecases/keys/key-uses.ts';
import { RefusedCallers } from './usecases/upkeep/refused-callers.ts';
import { DeliveryCounts } from './usecases/webhooks/deliver.ts';
import { settingsOf } from './usecases/webhooks/send.ts';

export interface AppOptions {
  config: Config;
  /** Absolute path. */
  dataDir: string;
  /** Replaces the configured ports; the caller closes them. */
  overrides?: Partial<Ports & { sender: WebhookSender }>;
  watch?: Instrumentation;
}

const unwatched: Instrumentation = { store: (store) => store, platform: (platform) => platform };

/** Disposing it closes the store and the platform that it opened. */
export type RankingApp = Ranking & AsyncDisposable;

/** Opens the application for a CLI command. */
export async function openRanking(
  options: AppOptions & Pick<OpenOptions, 'onNew' | 'onMigrated' | 'isReading'> & { report?: (alarm: Alarm) => void },
): Promise<RankingApp> {
  const ports = await openPorts(options);
  const { report = () => undefined, isReading } = options;
  return {
    ...ports,
    ...processState(ports, report),
    ...rulesOf(options.config, ports, { isInForce: isReading === false }),
  };
}

export async function checkLivePlatform(
  { groupId, apiKey, baseUrl, legacyBaseUrl, usersBaseUrl }: OpenCloudConfig,
  rest: Pick<LiveCheckOptions, 'clock' | 'signal' | 'memberId'>,
): Promise<LiveFinding[]> {
  const { checkLive } = await import('./platforms/live-check.ts');
  return checkLive({ groupId, baseUrl, legacyBaseUrl, usersBaseUrl, apiKey: apiKey.reveal(), ...rest });
}

/** The application behind the HTTP API. Disposing it closes the resources that it opened, in reverse order. */
export interface ServedApp extends LiveContext, AsyncDisposable {
  /**
   * The largest `deadlineMs` of all configurations so far: requests that began under a previous one may still be in
   * flight.
   */
  readonly maxDeadlineMs: number;
  /**
   * Applies a configuration. If `check` or any other step throws, the previous configuration stays in force. Requests
   * in flight continue with their original context.
   */
  applyConfig(
    config: Config,
    check: (candidate: DaemonContext) => Promise<void>,
    options?: ApplyOptions,
  ): Promise<void>;
  /**
   * Stores the roles to which the role names in the current configuration resolve, both those already read and those
   * read later.
   */
  takeEffect(): Promise<void>;
}

export interface ApplyOptions {
  /** If true, re-resolves all role names instead of only new ones. */
  relearns?: boolean;
}

export async function openApp(
  options: AppOptions & Pick<OpenOptions, 'onNew' | 'onMigrated'> & { log: Logger },
): Promise<ServedApp> {
  const { log, dataDir, watch = unwatched } = options;
  const { [Symbol.asyncDispose]: closePorts, ...ports } = await openPorts({ ...options, isServed: true });
  const unchanging = {
    ...{ ...ports, ...processState(ports, ({ level, message, facts }) => log[level](facts, message)), log },
    identity: crypto().randomBytes(32).toString('base64url'),
    ...{ refused: new RefusedCallers(), keyUses: new KeyUses(), gameModules: new GameModules() },
    requests: { count: 0, isDraining: false, hasSeenTls: false },
    ...{ discordSeen: {}, deliveries: new DeliveryCounts(), foreign: { TLS: 0, 'HTTP/2': 0, 'the PROXY protocol': 0 } },
    sender: options.overrides?.sender ?? openWebhookSender(ports.clock),
  };
  const contextOf = (config: Config, platform: Platform): DaemonContext =>
    Object.freeze({ ...unchanging, ...configuredParts(config, { ...ports, platform }, log) });
  const closers: Closer[] = [closePorts];
  let inForce = { config: options.config, platform: ports.platform };
  let current = contextOf(inForce.config, inForce.platform);
  let maxDeadlineMs = current.deadlineMs;
  const isAlone = () => ports.store.nodes?.isAlone ?? true;
  return {
    get current() {
      return current;
    },
    get maxDeadlineMs() {
      return maxDeadlineMs;
    },
    takeEffect: () => current.group.takeEffect({ prunes: isAlone() }),
    async applyConfig(config, check, { relearns = false } = {}) {
      if (inForce.config.platform.kind !== 'simulated') await refuseDefaultSimulation(ports.store, config);
      const next = await openAll(async (opened) => {
        let { platform } = inForce;
        if (!isSamePlatform(config.platform, inForce.config.platform)) {
          const other = await createPlatform({ config: config.platform, dataDir, ...ports, isServed: true });
          opened.push(() => other.close());
          platform = watch.platform(other);
        }
        const context = contextOf(config, platform);
        const before = context.group.title === current.group.title ? current.group.entries : context.group.entries;
        context.group.relearn((one) => relearns || !before.some((entry) => isSameEntry(entry, one)));
        await check(context);
        await context.group.takeEffect({ prunes: isAlone() });
        return { platform, context, opened };
      });
      // the previous platform stays open for requests in flight
      closers.push(...next.opened);
      unchanging.trust.renew();
      inForce = { config, platform: next.platform };
      current = next.context;
      maxDeadlineMs = Math.max(maxDeadlineMs, current.deadlineMs);
    },
    [Symbol.asyncDispose]: () => closeAll(closers),
  };
}

/** Loads the sender's modules on first use. */
export function openWebhookSender(clock: Clock): WebhookSender {
  const loaded = async () => (await import('./webhooks/http-sender.ts')).httpWebhookSender(clock);
  return {
    send: async (request, signal) => (await loaded()).send(request, signal),
    judgeAddress: async (target) => (await loaded()).judgeAddress(target),
  };
}

function configuredParts(config: Config, ports: Ports, log: Logger) {
  const platform = new CredentialBreaker({
    ...ports,
    report: (dead) => {
      if (dead === undefined) log.info('the Roblox key works again');
      else log.error({ hint: dead.hint, problem: 'credential' }, dead.message);
    },
  });
  return {
    ...rulesOf(config, { ...ports, platform }, { isInForce: false }),
    platform,
    deadCredential: () => platform.dead,
    latestCredential: () => platform.latest,
    platformSucceededAt: () => platform.succeededAt,
    limits: config.limits,
    retention: config.retention,
    headFile: config.audit.headFile,
    robloxId: config.security.robloxId,
    webhooks: settingsOf(config.webhooks),
    compat: config.compat,
    discord: config.discord,
    erasureSecret: config.erasure.secret,
  };
}

function openPorts({
  config,
  dataDir,
  overrides = {},
  watch = unwatched,
  isServed = false,
  onNew,
  onMigrated,
  isReading = false,
}: AppOptions & OpenOptions): Promise<Ports & AsyncDisposable> {
  return openAll(async (closers) => {
    const own = overrides.clock ?? systemClock;
    const engine = engineOf({ dataDir, clock: own, server: config.store });
    const store = overrides.store ?? (await engine.openStore({ isServed, isReading, onNew, onMigrated }));
    const clock = overrides.clock ?? store.clock;
    if (overrides.store === undefined) closers.push(() => store.close());
    await refuseDefaultSimulation(store, config);
    const platform =
      overrides.platform ?? (await createPlatform({ config: config.platform, dataDir, clock, store, isServed }));
    if (overrides.platform === undefined) closers.push(() => platform.close());
    const ports = { store: watch.store(store), platform: watch.platform(platform), clock };
    return { ...ports, [Symbol.asyncDispose]: () => closeAll(closers) };
  });
}

function rulesOf(
  config: Config,
  ports: Ports,
  { isInForce }: { isInForce: boolean },
): Pick<Ranking, 'group' | 'policy' | 'breaker' | 'suspension' | 'deadlineMs'> {
  const { breaker, suspension, ...policy } = config.policy;
  const title = groupTitle(config.platform);
  return {
    policy,
    breaker: breaker.enabled ? breaker : undefined,
    suspension,
    group: new GroupView({
      ...{ ...ports, title, isInForce, rankOne: config.group.rankOne },
      entries: roleEntries({ ...policy, ladder: config.group.ladder, suspensionRole: suspension.role }),
      onRoles: rolesRecorder(ports, title),
    }),
    deadlineMs: config.server.deadlineMs,
  };
}

/** Longer than any platform's read lag. */
const recentMs = 60_000;

function processState(
  { clock }: Ports,
  report: (alarm: Alarm) => void,
): Pick<Ranking, 'turns' | 'ownedChangeIds' | 'recentWrites' | 'trust'> {
  return {
    turns: new MemberTurns(),
    ownedChangeIds: new Set(),
    recentWrites: new LatestWrites(clock, recentMs),
    trust: new PlatformTrust(new Surprises(clock), report),
  };
}

function isSamePlatform(one: Config['platform'], other: Config['platform']): boolean {
  const isSameKey = one.kind !== 'open-cloud' || other.kind !== 'open-cloud' || one.apiKey.equals(other.apiKey);
  return isSameKey && JSON.stringify(one) === JSON.stringify(other);
}
