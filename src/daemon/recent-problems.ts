import { isoTime } from '../base/time.ts';
import type { DaemonContext, LiveContext } from '../usecases/daemon-context.ts';

/** Problems that last until they are fixed. Log lines have these values in their `problem` field. */
type LastingProblem =
  | 'audit heads'
  | 'configuration'
  | 'credential'
  | 'group'
  | 'platform'
  | 'plain http'
  | 'roles'
  | 'simulated keys'
  | 'trust';

interface Problem {
  /** In epoch milliseconds. */
  at: number;
  message: string;
  lasting: string | undefined;
  keyId: string | undefined;
  code: string | undefined;
  webhook: string | undefined;
  changeId: string | undefined;
}

/** The daemon's current state, which decides whether a problem is over. */
export interface DaemonState {
  lasting: Record<LastingProblem, boolean>;
  /** The ids of the keys in `RecentProblems.keyIds` that are still paused. */
  pausedKeys: ReadonlySet<string>;
  isCredentialDead: boolean;
  /** The times of the last successful read and write, in epoch milliseconds. */
  platformSucceededAt: { read: number; write: number };
  storeWorks: () => Promise<boolean>;
  isChangeOpen: (changeId: string) => Promise<boolean>;
  /** The names of the webhooks that are failing or disabled. */
  failingWebhooks: ReadonlySet<string>;
}

/**
 * Collects the latest distinct warnings and errors from the log, for `rankd status`. A repeated problem replaces its
 * previous line.
 */
export class RecentProblems {
  #problems: Problem[] = [];

  /** Ignores JSON log lines below the level `warn`. */
  note(line: string): void {
    if (!/^\{"level":"(warn|error|fatal)"/.test(line)) return;
    const problem = problemOf(JSON.parse(line));
    const others = this.#problems.filter(({ message }) => message !== problem.message);
    this.#problems = [problem, ...others].slice(0, maxKept);
  }

  get keyIds(): string[] {
    return this.#problems.flatMap(({ keyId, lasting }) =>
      keyId !== undefined && lasting === pausedKey ? [keyId] : [],
    );
  }

  /**
   * Returns the problems that are not over, judging by `state`. Paused keys and each `LastingProblem` are over once
   * fixed; all others are also dropped after a day. `now` is in epoch milliseconds.
   */
  async newestFirst(state: DaemonState, now: number): Promise<Array<{ at: string; message: string }>> {
    const judged = await Promise.all(
      this.#problems.map(async (problem) => ({ problem, isOver: await isOver(problem, state, now) })),
    );
    return judged.flatMap(({ problem: { at, message }, isOver }) =>
      isOver ? [] : [{ at: new Date(at).toISOString(), message }],
    );
  }
}

/** The value of `problem` in a log line about a key that the circuit breaker has paused. */
const pausedKey = 'paused key';
const maxKept = 5;
const momentaryLifeMs = 86_400_000;

async function isOver(problem: Problem, state: DaemonState, now: number): Promise<boolean> {
  const { at, lasting, keyId = '', code, webhook, changeId } = problem;
  if (lasting === pausedKey) return !state.pausedKeys.has(keyId);
  if (lasting !== undefined && isLasting(lasting, state)) return !state.lasting[lasting];
  if (at < now - momentaryLifeMs) return true;
  if (webhook !== undefined) return !state.failingWebhooks.has(webhook);
  const { read, write } = state.platformSucceededAt;
  switch (code) {
    case 'platform_unavailable':
    case 'platform_busy':
    case 'platform_rejected':
      return Math.max(read, write) > at;
    case 'platform_credential': // a key that can read may still lack permission to write
      return !state.isCredentialDead && (changeId === undefined ? read : write) > at;
    case 'store_unavailable':
      return state.storeWorks();
    case 'outcome_unknown':
      return changeId !== undefined && !(await state.isChangeOpen(changeId));
    default:
      return false;
  }
}

function isLasting(name: string, { lasting }: DaemonState): name is LastingProblem {
  return name in lasting;
}

interface LogLine {
  time: string;
  msg: string;
  problem?: string;
  keyId?: string;
  err?: { message?: string; code?: string };
  method?: string;
  path?: string;
  status?: number;
  code?: string;
  why?: string;
  webhook?: string;
  changeId?: string;
}

function problemOf({ time, msg, problem, err, method, path, status, code, why, ...ids }: LogLine): Problem {
  const what = status === undefined ? msg : [method, path, status, code].filter(Boolean).join(' ');
  return {
    at: Date.parse(time),
    message: [what, why ?? err?.message].filter(Boolean).join(': '),
    lasting: problem,
    code: code ?? err?.code,
    keyId: ids.keyId,
    webhook: ids.webhook,
    changeId: ids.changeId,
  };
}

const everyMs = 86_400_000;

/** Logs problems with the platform. Call `warn` every second. */
export class PlatformWarnings {
  /**
   * For each kind of surprise, its `lastAt` when it was logged, and the time (on `Clock.monotonic()`) until which it is
   * not logged again.
   */
  readonly #logged = new Map<string, { lastAt: number; until: number }>();
  /** The message that was logged for each unreachable host. */
  #unreached = new Map<string, string>();

  warn({ current }: LiveContext): void {
    this.#warnOfSurprises(current);
    this.#warnOfUnreached(current);
  }

  /** Logs each kind of surprise at most once a day. */
  #warnOfSurprises({ platform, clock, log }: DaemonContext): void {
    const now = clock.monotonic();
    for (const { operation, what, count, lastAt } of platform.surprises()) {
      const kind = `${operation} ${what}`;
      const logged = this.#logged.get(kind);
      if (logged !== undefined && (logged.lastAt === lastAt || now < logged.until)) continue;
      this.#logged.set(kind, { lastAt, until: now + everyMs });
      log.warn(
        { operation, what, count },
        "Roblox's responses differ from those that rankd expects: rankd status shows how",
      );
    }
  }

  /**
   * Logs a host as soon as it counts as unreachable, which can be before a call fails, and again if the reason changes.
   * Also logs when the host can be reached again.
   */
  #warnOfUnreached({ platform, log }: DaemonContext): void {
    const { unreached, reached } = platform.reachability();
    for (const { host, error, since } of unreached) {
      if (this.#unreached.get(host) === error.message) continue;
      const fields = { host, since: isoTime(since), cause: error.connection, hint: error.hint, problem: 'platform' };
      log.warn(fields, error.message);
    }
    for (const host of this.#unreached.keys())
      if (reached.includes(host)) log.info({ host }, 'Roblox can be reached again');
    this.#unreached = new Map(unreached.map(({ host, error }) => [host, error.message]));
  }
}
