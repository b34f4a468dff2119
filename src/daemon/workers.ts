import { isRankdError } from '../base/errors.ts';
import type { RankChange } from '../core/model.ts';
import type { CallContext } from '../ports/index.ts';
import { callWithin } from '../ports/platform.ts';
import { makeLateReads } from '../usecases/change/late-read.ts';
import { hasOrphanedChange, type RecoveryTries, recoverChanges } from '../usecases/change/reconcile-change.ts';
import type { DaemonContext, LiveContext } from '../usecases/daemon-context.ts';
import { credentialWarnings } from '../usecases/group/check-group.ts';
import { endDueHolds, sweepEveryMs, sweepHolds } from '../usecases/holds/hold-rounds.ts';
import { WallClock } from '../usecases/holds/wall-clock.ts';
import { nameMembers } from '../usecases/people/users.ts';
import { isInCharge } from '../usecases/upkeep/nodes.ts';
import { CredentialEvents, MisfitAlarms } from '../usecases/upkeep/operator-events.ts';
import { pruneRecords } from '../usecases/upkeep/prune-records.ts';
import { DiscordLimits, deliverTo, type Progress, webhooksToServe } from '../usecases/webhooks/deliver.ts';
import type { AuditHeadWriter } from './audit-head-writer.ts';
import { PlatformWarnings } from './recent-problems.ts';

const checkOrphanedEveryMs = 500;
const recoverEveryMs = 2_000;
const checkEveryMs = 3_600_000;
const reviveEveryMs = 5_000;
const flushEveryMs = 60_000;
const noteEveryMs = 1_000;
const pruneEveryMs = 3_600_000;
const nameEveryMs = 5_000;
const endHoldsEveryMs = 5_000;

/** Starts the background workers. Returns a function that stops them and stores buffered data. */
export function startWorkers(live: LiveContext, heads: AuditHeadWriter): () => Promise<void> {
  const stopping = new AbortController();
  const app = live.current; // only for parts that a reload does not replace
  const credential = watchCredential(live, stopping.signal);
  const recovery = recover(live, stopping.signal);
  const pruning = every(app, pruneEveryMs, stopping.signal, async () => {
    if (await isInCharge(live.current, 'pruning'))
      await pruneRecords(live.current, live.current.retention, stopping.signal);
  });
  const lateReads = makeLateReads(() => live.current, {
    stop: stopping.signal,
    report: (error) => app.log.error({ err: error }, 'a change could not be read again'),
  });
  const noting = every(app, noteEveryMs, stopping.signal, () => heads.noteOrLog(live.current));
  const naming = every(app, nameEveryMs, stopping.signal, () => nameMembers(live.current, stopping.signal));
  const holds = new HoldWorker(live, stopping.signal);
  const ending = every(app, endHoldsEveryMs, stopping.signal, () => holds.endDue());
  const sweeping = every(app, sweepEveryMs, stopping.signal, () => holds.sweep());
  const credentials = new CredentialEvents();
  const recordingCredential = every(app, noteEveryMs, stopping.signal, () => credentials.record(live.current));
  const misfits = new MisfitAlarms();
  const recordingMisfits = every(app, noteEveryMs, stopping.signal, () => misfits.record(live.current));
  const delivering = deliverEvents(live, stopping.signal);
  const flushes = { 'refused callers': app.refused, 'uses of keys': app.keyUses };
  const flushing = Object.values(flushes).map((gathered) =>
    every(app, flushEveryMs, stopping.signal, () => gathered.flush(app)),
  );
  return async () => {
    stopping.abort();
    await Promise.all([
      recovery,
      credential,
      lateReads,
      pruning,
      noting,
      naming,
      delivering,
      recordingCredential,
      recordingMisfits,
      ending,
      sweeping,
      ...flushing,
    ]);
    // a read-only store must not prevent an orderly shutdown
    for (const [what, gathered] of Object.entries(flushes)) {
      await gathered.flush(app).catch((error) => app.log.warn({ err: error }, `the last ${what} could not be stored`));
    }
    await heads.noteOrLog(live.current);
  };
}

/**
 * Logs platform problems, even while the daemon waits for the platform at startup. Returns a function that stops the
 * logging.
 */
export function warnOfPlatform(live: LiveContext): () => Promise<void> {
  const stopping = new AbortController();
  const warnings = new PlatformWarnings();
  const warning = every(live.current, noteEveryMs, stopping.signal, async () => warnings.warn(live));
  return async () => {
    stopping.abort();
    await warning;
  };
}

/**
 * Starts a reconciliation round every few seconds, and as soon as a change is orphaned. Does not wait for previous
 * rounds, which may be waiting for the platform.
 */
async function recover(live: LiveContext, stop: AbortSignal): Promise<void> {
  const { store, log, clock } = live.current;
  const tries: RecoveryTries = { underWay: new Set(), last: new Map() };
  const rounds = new Set<Promise<void>>();
  const report = (change: RankChange, error: unknown) =>
    log.warn({ err: error, changeId: change.id }, 'a change is not reconciled yet; trying again');
  let dueAt = Number.NEGATIVE_INFINITY;
  await every(live.current, checkOrphanedEveryMs, stop, async () => {
    const now = clock.monotonic();
    if (now < dueAt && !(await hasOrphanedChange(live.current))) return;
    dueAt = now + recoverEveryMs;
    const round = store
      .ping()
      .then(() => recoverChanges(live.current, { report, stop, tries }))
      .catch((error) => log.error({ err: error }, 'open changes could not be read; trying again'))
      .finally(() => rounds.delete(round));
    rounds.add(round);
  });
  await Promise.all(rounds);
}

/** Checks the credential every hour, and every few seconds while it is rejected or the platform is unreachable. */
async function watchCredential(live: LiveContext, stop: AbortSignal): Promise<void> {
  const logged = new Set<string>();
  const withCall = async (work: (app: DaemonContext, call: CallContext) => Promise<unknown>) => {
    const app = live.current;
    using call = callWithin(app.clock, app.deadlineMs, 'credential');
    await work(app, { ...call, signal: AbortSignal.any([call.signal, stop]) }).catch((error) => {
      if (!isRankdError(error)) throw error;
      const isLogged = error.code === 'platform_credential' || error.connection !== undefined;
      if (!isLogged) app.log.warn({ err: error, problem: 'group' }, cannotRank);
    });
  };
  const check = async (app: DaemonContext, call: CallContext) => {
    for (const warning of await credentialWarnings(app, call)) {
      if (!logged.has(warning)) app.log.warn(warning);
      logged.add(warning);
    }
  };
  await Promise.all([
    every(live.current, checkEveryMs, stop, () => withCall(check)),
    every(live.current, reviveEveryMs, stop, async () => {
      const { deadCredential } = live.current;
      if (deadCredential() !== undefined) await withCall(({ platform }, call) => platform.group(call));
      else if (isUnreached(live.current)) await withCall(check);
    }),
  ]);
}

/**
 * True if a host has become unreachable since the last successful read. A check of the credential then detects when it
 * is reachable again.
 */
function isUnreached({ platform, platformSucceededAt }: DaemonContext): boolean {
  const { unreached } = platform.reachability();
  return unreached.some(({ since }) => since > platformSucceededAt().read);
}

export const cannotRank = "can't rank yet";

async function every(
  { clock, log }: Pick<DaemonContext, 'clock' | 'log'>,
  ms: number,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    await work().catch((error) => log.error({ err: error }, 'background work failed; trying again'));
    await clock.sleep(ms, signal).catch(() => undefined);
  }
}

/**
 * Ends suspensions and temporary ranks when they are due. Call `endDue` every few seconds, and `sweep` every few
 * minutes.
 */
class HoldWorker {
  readonly #live: LiveContext;
  readonly #stop: AbortSignal;
  readonly #wallClock: WallClock;
  /**
   * The last round's context, if its credential worked. A reload creates a new context, so the next round retries
   * failed holds at once.
   */
  #seen: DaemonContext | undefined;

  constructor(live: LiveContext, stop: AbortSignal) {
    this.#live = live;
    this.#stop = stop;
    this.#wallClock = new WallClock(live.current.clock);
  }

  async endDue(): Promise<void> {
    const app = this.#live.current;
    const { isSteady, jumpedMs } = this.#wallClock.check();
    if (jumpedMs !== undefined)
      app.log.warn({ jumpedMs, problem: 'clock' }, describeJump(jumpedMs, app.store.nodes !== undefined));
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

function describeJump(jumpedMs: number, isOfServer: boolean): string {
  const clock = isOfServer ? "the database server's clock" : "this machine's clock";
  return jumpedMs > 0
    ? `${clock} jumped forward; no suspension ends until the clock has run steadily for 10 minutes`
    : `${clock} was set back; suspensions last longer by that much`;
}

const pollWebhooksMs = 250;
const pollWithoutWebhooksMs = 1_000;
/** Keeps an unreachable store from flooding the log. */
const retryWebhooksMs = 5_000;
/** The maximum number of concurrent delivery rounds, each for one webhook. */
const maxRounds = 8;

/**
 * Delivers events until `stop` is aborted. Polls the store, because a poll is cheap, does not slow rank changes, and
 * also finds events that commands have written.
 */
export async function deliverEvents(live: LiveContext, stop: AbortSignal): Promise<void> {
  const rounds = new Map<string, Promise<void>>();
  const known = new Map<string, Progress>();
  const limits = new DiscordLimits();
  const { clock } = live.current;
  while (!stop.aborted) {
    const waitMs = await startRounds(live, { rounds, known, limits, stop }).then(
      (webhooks) => (webhooks > 0 ? pollWebhooksMs : pollWithoutWebhooksMs),
      (error) => {
        live.current.log.error({ err: error }, 'the webhooks could not be read; trying again');
        return retryWebhooksMs;
      },
    );
    await clock.sleep(waitMs, stop).catch(() => undefined);
  }
  await Promise.all(rounds.values());
}

interface Work {
  rounds: Map<string, Promise<void>>;
  /** Delivery progress, keyed by webhook id. The webhook that has waited longest comes first. */
  known: Map<string, Progress>;
  limits: DiscordLimits;
  stop: AbortSignal;
}

/**
 * Starts a delivery round for each idle webhook, so that a slow target does not delay the others. Resolves with the
 * number of webhooks that this daemon serves.
 */
async function startRounds(live: LiveContext, { rounds, known, limits, stop }: Work): Promise<number> {
  const { ids, count } = await webhooksToServe(live.current);
  const order = [...known.keys()];
  for (const id of ids.toSorted((one, other) => order.indexOf(one) - order.indexOf(other))) {
    if (rounds.has(id) || rounds.size >= maxRounds) continue;
    const progress = known.get(id) ?? { scannedTo: { alarms: 0, log: 0 } };
    known.delete(id);
    known.set(id, progress); // moves it to the end
    const round = deliverTo(() => live.current, id, { progress, limits, signal: stop })
      .catch(async (error) => {
        if (stop.aborted) return;
        live.current.log.error({ err: error, webhookId: id }, 'webhook events could not be delivered; retrying');
        await live.current.clock.sleep(retryWebhooksMs, stop).catch(() => undefined);
      })
      .finally(() => rounds.delete(id));
    rounds.set(id, round);
  }
  return count;
}
