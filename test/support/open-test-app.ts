import type { ServedApp } from '../../src/app.ts';
import { createLog } from '../../src/base/log.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { KeyMode, KeyRules, Scope } from '../../src/core/model.ts';
import { startDaemon } from '../../src/daemon/daemon.ts';
import { createPlatform } from '../../src/platforms/create-platform.ts';
import type { CallContext, Clock, Platform, Store } from '../../src/ports/index.ts';
import type { DaemonContext } from '../../src/usecases/daemon-context.ts';
import { createKey, type KeyRequest } from '../../src/usecases/keys/keys.ts';
import { addPlaces } from '../../src/usecases/whitelist/whitelist.ts';
import { rankBody } from './answers.ts';
import { freshDataDir } from './fresh-data-dir.ts';
import { type Answer, type Sent, send } from './send.ts';
import { returnStore, storeOf } from './store-of-app.ts';
import { TempDir } from './temp-dir.ts';

export { type Answer, type Sent, send } from './send.ts';

/** The default place on a test key's whitelist. */
export const place = 42;

/** The simulated group's role ids. */
export const roles = {
  guest: 70_000,
  base: 12_884_901_889,
  trainee: 70_010,
  officer: 70_020,
  captain: 8_589_934_642,
  admin: 70_200,
  owner: 70_255,
};

/** Overrides for the default configuration, which uses the simulated group. */
export type ConfigOverrides = { [Section in keyof Config]?: Partial<Config[Section]> };

export interface TestAppOptions {
  config?: ConfigOverrides;
  platform?: (simulated: Platform) => Platform;
  clock?: Clock;
  /** Used instead of the store in the directory. The caller must close it. */
  store?: Store;
  /** `debug` by default. */
  logLevel?: Config['log']['level'];
  /** The directory of a stopped test app, to start again on its data. */
  dataDir?: string;
}

export interface TestKey {
  name?: string;
  mode?: KeyMode;
  scopes?: Scope[];
  rules?: KeyRules;
  /** Epoch milliseconds. */
  expiresAt?: number;
  places?: number[];
}

export interface TestApp extends AsyncDisposable {
  /** e.g. `http://127.0.0.1:40213` */
  url: string;
  /** `undefined` if metrics are off. */
  metricsUrl: string | undefined;
  /** The daemon's current context; a reload replaces it. */
  readonly app: DaemonContext;
  live: ServedApp;
  store: Store;
  dataDir: string;
  logLines: string[];
  /** Returns the new key's secret. */
  createKey(options?: TestKey): Promise<string>;
  post(path: string, sent?: Sent): Promise<Answer>;
  /** Requests a rank change with `rankBody(rest)` from `place`. */
  rank(key: string, rest?: Record<string, unknown>, sent?: Sent): Promise<Answer>;
  /** Verifies the key for a place, by default `place`. */
  verify(key: string | undefined, placeid?: unknown): Promise<Answer>;
  /** Returns the ids of the roles that a member holds in the simulated group. */
  heldBy(userId: number): Promise<number[] | undefined>;
  /** Stops the daemon without removing its data. */
  stop(): Promise<void>;
  /** Stops the daemon and removes its data; disposal does the same. */
  close(): Promise<void>;
}

/** Starts a daemon in this process, on a free port, with a new store in a temporary directory. */
export async function openTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const dir = options.dataDir === undefined ? await freshDataDir() : new TempDir(options.dataDir);
  const dataDir = dir.path;
  const config = { ...testConfig(dataDir, options.config), ...(await storeOf(dataDir)) };
  const logLines: string[] = [];
  const log = createLog({
    level: options.logLevel ?? 'debug',
    readable: false,
    write: (line) => void logLines.push(line),
  });
  const { clock: ownClock, store } = options;
  const given = { ...(ownClock !== undefined && { clock: ownClock }), ...(store !== undefined && { store }) };
  const simulated = await createPlatform({ config: config.platform, dataDir, ...neverUsed });
  const platform = options.platform === undefined ? {} : { platform: options.platform(simulated) };
  const daemon = await startDaemon({ config, dataDir, log, overrides: { ...given, ...platform } }).catch(
    async (error) => {
      await simulated.close();
      if (options.dataDir === undefined) dir[Symbol.dispose]();
      throw error;
    },
  );

  const post = (path: string, sent?: Sent) => send(daemon.url + path, { method: 'POST', ...sent });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= daemon.stop().then(() => simulated.close());
    return stopping;
  };
  const close = async () => {
    await stop();
    await returnStore(dataDir);
    dir[Symbol.dispose]();
  };
  return {
    url: daemon.url,
    metricsUrl: daemon.metricsUrl,
    get app() {
      return daemon.app.current;
    },
    live: daemon.app,
    store: daemon.app.current.store,
    dataDir,
    logLines,
    createKey: (key) => makeKey(daemon.app.current, key),
    post,
    verify: (key, placeid = place) => post('/v1/apikey', { key, body: { placeid } }),
    rank: (key, rest, sent) => post(`/v1/ranker?placeid=${place}`, { key, body: rankBody(rest), ...sent }),
    heldBy: async (userId) => (await simulated.getMember(userId, anyCall()))?.roleIds,
    stop,
    close,
    [Symbol.asyncDispose]: close,
  };
}

export function testConfig(dataDir: string, overrides: ConfigOverrides = {}): Config {
  const flags = { 'server.port': '0', 'platform.kind': 'simulated' };
  const { config } = loadConfig({ flags, env: {}, cwd: dataDir });
  const sections = Object.entries(config).map(([name, section]) => [
    name,
    typeof section !== 'object' || Array.isArray(section)
      ? (overrides[name as keyof Config] ?? section)
      : { ...section, ...(overrides[name as keyof Config] as object | undefined) },
  ]);
  return Object.fromEntries(sections) as Config;
}

async function makeKey(
  { store, clock }: Pick<DaemonContext, 'store' | 'clock'>,
  { places = [place], ...key }: TestKey = {},
): Promise<string> {
  const request: KeyRequest = { name: 'main', mode: 'live', scopes: ['verify', 'rank'], ...key };
  const { key: made, secret } = await createKey({ store, clock }, { ...request, by: 'cli:ann@host' });
  if (places.length > 0) await addPlaces({ store, clock }, { key: made.id, placeIds: places, by: 'cli:ann@host' });
  return secret;
}

function anyCall(): CallContext {
  return { signal: new AbortController().signal, deadlineAt: Number.POSITIVE_INFINITY, lane: 'test' };
}

const neverUsed = {
  clock: { now: () => 0, monotonic: () => 0, sleep: async () => undefined },
  store: { findBaseRole: async () => undefined, storeBaseRole: async () => undefined, budgetLedger: () => undefined },
};
