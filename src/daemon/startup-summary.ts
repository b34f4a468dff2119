import { isRankdError } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import { userTitle } from '../core/describe.ts';
import type { CallContext } from '../ports/index.ts';
import { callWithin } from '../ports/platform.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { examineGroup } from '../usecases/group/examine-group.ts';
import { acceptedKeys } from '../usecases/keys/keys.ts';
import { userNameIfKnown } from '../usecases/people/users.ts';
import { cannotRank } from './workers.ts';

const timeoutMs = 10_000;
const retryEveryMs = 5_000;

/**
 * Once Roblox is reachable, logs the real group, the acting account and the number of keys, or the reason why the
 * account can't change ranks. The credential check reports a wrong group or Roblox key. Stops trying when disposed.
 */
export function logStartupSummary(app: DaemonContext, { platform }: Config): AsyncDisposable {
  const stopping = new AbortController();
  const logged =
    platform.kind === 'simulated' ? Promise.resolve() : logOnceReached(app, platform.groupId, stopping.signal);
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await logged;
    },
  };
}

async function logOnceReached(app: DaemonContext, groupId: number, stop: AbortSignal): Promise<void> {
  while (!stop.aborted && !(await logGroup(app, groupId, stop)))
    await app.clock.sleep(retryEveryMs, stop).catch(() => undefined);
}

/** Resolves with false if the platform could not be reached. */
async function logGroup(app: DaemonContext, groupId: number, stop: AbortSignal): Promise<boolean> {
  using within = callWithin(app.clock, timeoutMs, 'start');
  const call = { ...within, signal: AbortSignal.any([within.signal, stop]) };
  try {
    app.log.info(await summaryOf(app, groupId, call));
  } catch (error) {
    if (!isRankdError(error)) throw error;
    if (error.connection !== undefined) return false;
    if (error.code === 'above_acting_account') app.log.warn({ err: error, problem: 'group' }, cannotRank);
  }
  return true;
}

async function summaryOf(app: DaemonContext, groupId: number, call: CallContext): Promise<string> {
  const { group, acting } = await examineGroup(app, call, groupId);
  const keys = counted((await acceptedKeys(app, app.group)).length, 'game key');
  return `ranks in ${group.name} (${group.id})${acting === undefined ? '' : ` as ${userTitle(acting.userId, await userNameIfKnown(app, acting.userId, call))}`}; ${keys}`;
}
