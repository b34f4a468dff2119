import { type AppOptions, openRanking } from '../../src/app.ts';
import { deadlineIn } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { RoleChangeKind } from '../../src/core/model.ts';
import { type Daemon, startDaemon } from '../../src/daemon/daemon.ts';
import { OpenCloudPlatform } from '../../src/platforms/open-cloud.ts';
import { changeRank } from '../../src/usecases/change/change-rank.ts';
import { createKey, type KeyRequest } from '../../src/usecases/keys/keys.ts';
import { type FakeOpenCloud, sampleUsers, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { place, send } from '../support/open-test-app.ts';
import { returnStore, storeOf } from '../support/store-of-app.ts';
import { TempDir } from '../support/temp-dir.ts';
import { type Answered, compare } from './compare.ts';
import { FastClock } from './fast-clock.ts';
import { ladder } from './model-rules.ts';

export interface Ask {
  userId: number;
  rank: number;
  /** If set, the request adds or removes the extra role with this rank. */
  kind?: RoleChangeKind | undefined;
  idempotencyKey?: string | undefined;
}

export interface RecordedAnswer extends Answered {
  isReplayed: boolean;
  text: string;
}

const speed = 40;
const clock = new FastClock(speed);
const operator = 'cli:ann@host';
/** In real time. Reconciling a change without effect takes 8 s of accelerated time. */
const reconcilesWithinMs = 5_000;

/** A daemon and a fake Roblox, both on an accelerated clock, and all responses so far. */
export class ModelWorld implements AsyncDisposable {
  readonly fake: FakeOpenCloud;
  readonly #dir = new TempDir();
  readonly #options: AppOptions;
  readonly #answered: Answered[] = [];
  readonly #initialRoles: Map<number, number[]>;
  #daemon: Daemon | undefined;
  #secrets = { live: '', test: '' };
  #requests = 0;

  private constructor(fake: FakeOpenCloud, hasLadder: boolean) {
    const dataDir = this.#dir.path;
    const flags = { 'server.port': '0', 'platform.kind': 'simulated', 'policy.breaker.enabled': 'false' };
    const { config } = loadConfig({ flags, env: {}, cwd: dataDir });
    const platform = new OpenCloudPlatform({ ...fake, clock });
    this.fake = fake;
    if (hasLadder) config.group.ladder = [...ladder];
    this.#options = { config, dataDir, overrides: { platform, clock } };
    this.#initialRoles = new Map(
      Object.values(sampleUsers).flatMap((userId): Array<[number, number[]]> => {
        const held = fake.group.held(userId);
        return held === undefined ? [] : [[userId, held]];
      }),
    );
  }

  static async open(hasLadder = false): Promise<ModelWorld> {
    const world = new ModelWorld(await startFakeOpenCloud({ clock, latencyMs: 40, hangUpMs: 1_000 }), hasLadder);
    Object.assign(world.#options.config, await storeOf(world.#dir.path));
    const { owner, actor, otherAdmin, stranger } = sampleUsers;
    // rankd must refuse every request that would change these users' roles
    for (const userId of [owner, actor, otherAdmin, stranger]) world.fake.expectNoWrites(userId);
    await world.start();
    const { store } = world.#running.app.current;
    for (const mode of ['live', 'test'] as const) {
      const request: KeyRequest = { name: mode, mode, scopes: ['verify', 'rank', 'roles'] };
      const { secret } = await createKey({ store, clock }, { ...request, place: { id: place }, by: operator });
      world.#secrets[mode] = secret;
    }
    return world;
  }

  async ask({ userId, rank, kind, idempotencyKey }: Ask, mode: 'live' | 'test' = 'live'): Promise<RecordedAnswer> {
    const { rankeeId, newRankId, ...request } = this.#request({ userId, rank }, idempotencyKey);
    const path = kind === undefined ? 'v1/ranker' : `v2/roles/${kind === 'role_added' ? 'add' : 'remove'}`;
    const { status, headers, text } = await send(`${this.#running.url}/${path}?placeid=${place}`, {
      method: 'POST',
      key: this.#secrets[mode],
      body: { ...request, ...(kind === undefined ? { rankeeId, newRankId } : { robloxUserId: userId, role: rank }) },
      headers: { 'idempotency-key': idempotencyKey },
    });
    const changeId = String(headers['x-rank-change'] ?? '');
    const answered = { status, changeId, rankeeId: userId, newRankId: rank };
    this.#answered.push(answered);
    return { ...answered, isReplayed: headers['idempotent-replayed'] === 'true', text };
  }

  /** Changes a rank as a command would while the daemon is running. Resolves with the change's state. */
  async askAsOperator(ask: Ask): Promise<string> {
    await using app = await openRanking(this.#options);
    using deadline = deadlineIn(clock, app.deadlineMs);
    const { kind } = ask;
    const caller = { by: operator, dryRun: false };
    const order = { caller, request: this.#request(ask), ...(kind !== undefined && { kind }) };
    const { change } = await changeRank(app, order, deadline);
    return change.state;
  }

  async restart(): Promise<void> {
    await this.#daemon?.stop();
    await this.start();
  }

  async start(): Promise<void> {
    const log = createLog({ level: 'silent', readable: false, write: () => undefined });
    this.#daemon = await startDaemon({ ...this.#options, log });
  }

  /** Ends all faults, waits until every change is reconciled, and resolves with the inconsistencies as sentences. */
  async reconcile(): Promise<string[]> {
    this.fake.faults.clear();
    const { store } = this.#running.app.current;
    const giveUpAt = performance.now() + reconcilesWithinMs;
    let open = await store.openChanges();
    while (open.length > 0 && performance.now() < giveUpAt) {
      await clock.sleep(500);
      open = await store.openChanges();
    }
    const history = (await store.listChanges({ limit: 10_000 })).reverse();
    const records = { fake: this.fake, initialRoles: this.#initialRoles, history, answered: this.#answered };
    const { lost, doubled, differing } = compare(records);
    const unreconciled = open.map(({ change: { id, state } }) => `${id} is still ${state}`);
    return [...unreconciled, ...lost, ...doubled, ...differing, ...this.fake.violations()];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#daemon?.stop();
    await this.fake.close();
    await returnStore(this.#dir.path);
    this.#dir[Symbol.dispose]();
  }

  get #running(): Daemon {
    if (this.#daemon === undefined) throw new Error('the daemon is not running');
    return this.#daemon;
  }

  /** Names each request uniquely, to detect changes that are applied twice. A repeated request has the same name. */
  #request({ userId, rank }: Ask, name?: string) {
    this.#requests += 1;
    const command = name ?? `request ${this.#requests}`;
    return { rankerName: 'Ann', rankerId: 0, rankeeName: 'Bob', rankeeId: userId, newRankId: rank, command };
  }
}
