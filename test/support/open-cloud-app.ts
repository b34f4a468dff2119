import { setImmediate as endOfTurn } from 'node:timers/promises';
import { expect } from 'vitest';
import { openRanking, type RankingApp } from '../../src/app.ts';
import { createLog } from '../../src/base/log.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { KeyRules, RankChange, Scope } from '../../src/core/model.ts';
import type { RankOne, RoleName } from '../../src/core/role-scheme.ts';
import { startDaemon } from '../../src/daemon/daemon.ts';
import { OpenCloudPlatform, type OpenCloudTuning } from '../../src/platforms/open-cloud.ts';
import type { CallContext, Clock } from '../../src/ports/index.ts';
import { recoverChanges } from '../../src/usecases/change/reconcile-change.ts';
import type { DaemonContext } from '../../src/usecases/daemon-context.ts';
import { createKey, type KeyRequest } from '../../src/usecases/keys/keys.ts';
import {
  type FakeOpenCloud,
  type FakeOpenCloudOptions,
  sampleRoles,
  sampleUsers,
  startFakeOpenCloud,
} from './fake-open-cloud/index.ts';
import { freshDataDir } from './fresh-data-dir.ts';
import { type Answer, send } from './open-test-app.ts';
import { SkippableClock } from './paced-clock.ts';
import { platformWith } from './platform-with.ts';
import { returnStore, storeOf } from './store-of-app.ts';

/** Timeouts and waits as short as a local fake allows. */
const tuning: OpenCloudTuning = {
  perTryTimeoutMs: 400,
  backOffMs: 20,
  maxBackOffMs: 100,
  minTryMs: 20,
  maxBodyBytes: 1024 * 1024,
  publicRolesTimeoutMs: 200,
  userNamesTimeoutMs: 300,
};

export interface OpenCloudAppOptions {
  fake?: FakeOpenCloudOptions;
  /** Called before the daemon starts. */
  prepare?: (fake: FakeOpenCloud) => void;
  tuning?: Partial<OpenCloudTuning>;
  deadlineMs?: number;
  readLagMs?: number;
  ladder?: RoleName[];
  rankOne?: RankOne;
  policy?: Partial<Config['policy']>;
  /** The scopes of all keys that the app creates; verify and rank by default. */
  scopes?: Scope[];
  compat?: Config['compat'];
  limits?: Partial<Config['limits']>;
  hasMetrics?: boolean;
  discord?: Config['discord'];
}

export interface RankOptions {
  key?: string;
  newRankId?: number;
  idempotencyKey?: string;
}

/** A daemon in this process, with a new store and a new fake Open Cloud. */
export interface OpenCloudApp<TestClock extends Clock = SkippableClock> extends AsyncDisposable {
  /** The daemon's context as of its latest start; `reload` does not update it. */
  readonly app: DaemonContext;
  fake: FakeOpenCloud;
  dataDir: string;
  clock: TestClock;
  readonly url: string;
  /** `undefined` if metrics are off. */
  readonly metricsUrl: string | undefined;
  /** The secret of a key with place 1 on its whitelist. */
  secret: string;
  logLines: string[];
  /** Requests a rank change with POST /v1/ranker, by default to rank 20 (Officer). */
  rank(userId: number, options?: RankOptions): Promise<Answer>;
  /** Returns the stored change whose id the response contains. */
  changeOf(answer: Answer): Promise<RankChange>;
  newKey(name: string, rules?: KeyRules): Promise<string>;
  /** Returns a context for platform calls that the test makes itself. */
  call(): CallContext;
  /** Re-applies the current configuration. */
  reload(): Promise<void>;
  restart(): Promise<void>;
  /** Opens the app as a command does while the daemon is running. */
  openShell(): Promise<RankingApp>;
  /** Runs one recovery round. Returns the ids of the changes that it reports. */
  recover(): Promise<string[]>;
}

export function openCloudApp(options: OpenCloudAppOptions = {}): Promise<OpenCloudApp> {
  return openCloudAppOn(new SkippableClock(), options);
}

/** Like `openCloudApp`, but on the given clock. */
export async function openCloudAppOn<TestClock extends Clock>(
  clock: TestClock,
  options: OpenCloudAppOptions,
): Promise<OpenCloudApp<TestClock>> {
  await using opened = new AsyncDisposableStack();
  const fake = await startFakeOpenCloud({ ...options.fake, clock });
  opened.defer(() => fake.close());
  options.prepare?.(fake);
  const { path: dataDir } = opened.use(await freshDataDir());
  const openCloud = new OpenCloudPlatform({
    ...fake,
    clock,
    tuning: { ...tuning, ...options.tuning },
  });
  const logLines: string[] = [];
  opened.defer(() => returnStore(dataDir));
  const config = { ...configOf(dataDir, options), ...(await storeOf(dataDir)) };
  const log = createLog({ level: 'info', readable: false, write: (line) => void logLines.push(line) });
  const overrides = { clock, platform: platformWith(openCloud, { readLagMs: options.readLagMs ?? 700 }) };
  const start = () => startDaemon({ config, dataDir, log, overrides });
  let daemon = await start();
  opened.defer(() => daemon.stop());
  let app = daemon.app.current;
  await quiet(fake, app);
  const { scopes = ['verify', 'rank'] } = options;
  const newKey = (name: string, rules = {}) => makeKey(app, { name, rules, scopes });
  const secret = await newKey('main');
  const tries = { underWay: new Set<string>(), last: new Map<string, number>() };
  const running = opened.move();
  return {
    ...{ fake, dataDir, clock, secret, logLines, newKey },
    get app() {
      return app;
    },
    get url() {
      return daemon.url;
    },
    get metricsUrl() {
      return daemon.metricsUrl;
    },
    rank: (userId, { key = secret, newRankId = 20, idempotencyKey } = {}) =>
      send(`${daemon.url}/v1/ranker?placeid=1`, {
        method: 'POST',
        key,
        headers: { 'idempotency-key': idempotencyKey },
        body: { rankerName: 'Ann', rankerId: 0, rankeeName: 'Bob', rankeeId: userId, newRankId },
      }),
    changeOf: async ({ headers }) => {
      const change = await app.store.findChange(String(headers['x-rank-change']));
      if (change === undefined) throw new Error('the history does not have the change that the response names');
      return change;
    },
    call: () => ({ signal: new AbortController().signal, deadlineAt: clock.monotonic() + 2_000, lane: 'test' }),
    restart: async () => {
      await daemon.stop();
      daemon = await start();
      app = daemon.app.current;
    },
    openShell: () => openRanking({ config, dataDir, overrides }),
    reload: () => daemon.app.applyConfig(config, async () => undefined),
    recover: async () => {
      const reported: string[] = [];
      await recoverChanges(app, {
        report: ({ id }) => void reported.push(id),
        stop: new AbortController().signal,
        tries,
      });
      return reported;
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Wraps a test that needs a new app, and fails it if rankd violates the platform's rules. */
export function onOpenCloud(
  body: (system: OpenCloudApp) => Promise<void>,
  options: OpenCloudAppOptions = {},
): () => Promise<void> {
  return async () => {
    await using system = await openCloudApp(options);
    await body(system);
    expect(system.fake.violations()).toEqual([]);
  };
}

function configOf(
  dataDir: string,
  {
    deadlineMs = 20_000,
    ladder,
    rankOne = 'custom',
    policy = {},
    limits = {},
    compat = [],
    hasMetrics = false,
    discord,
  }: OpenCloudAppOptions,
) {
  const { config } = loadConfig({
    flags: { 'server.port': '0', 'platform.kind': 'simulated' },
    env: {},
    cwd: dataDir,
  });
  return {
    ...config,
    group: { ladder, rankOne },
    policy: { ...config.policy, ...policy },
    limits: { ...config.limits, ...limits },
    compat,
    discord,
    server: { ...config.server, deadlineMs },
    metrics: { ...config.metrics, enabled: hasMetrics, port: 0 },
  };
}

/**
 * Waits until the daemon's workers have read the credential and the roles, or have found that Roblox rejects the
 * credential.
 */
async function quiet({ journal }: FakeOpenCloud, app: DaemonContext): Promise<void> {
  const isQuiet = () =>
    journal.requests('introspect').length > 0 &&
    journal.requests('roles').length > 1 &&
    journal.entries.every(({ endedAt }) => endedAt !== undefined);
  // yields to the event loop instead of sleeping, because a manual clock could advance during a sleep
  while (!isQuiet() && app.deadCredential() === undefined) await endOfTurn();
  for (let turns = 0; turns < 5; turns += 1) await endOfTurn();
}

async function makeKey(
  { store, clock }: DaemonContext,
  { rules, ...key }: Pick<KeyRequest, 'name' | 'scopes'> & { rules: KeyRules },
): Promise<string> {
  const request: KeyRequest = { ...key, mode: 'live', rules };
  const { secret } = await createKey({ store, clock }, { ...request, place: { id: 1 }, by: 'cli:ann@host' });
  return secret;
}

export { sampleRoles, sampleUsers, send };
