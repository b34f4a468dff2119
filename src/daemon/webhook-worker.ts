import type { LiveContext } from '../usecases/daemon-context.ts';
import { DiscordLimits, deliverTo, type Progress, webhooksToServe } from '../usecases/webhooks/deliver.ts';

const lookEveryMs = 250;
/** The interval while there is no webhook. */
const idleMs = 1_000;
/** The pause after an internal failure: a missing store must not fill the log. */
const restMs = 5_000;
/** At most this many targets are served at once. */
const maxRounds = 8;

/**
 * Delivers events until `stop` is aborted. It often checks the store for new events: that costs microseconds, does not
 * slow rank changes, and includes events of commands next to the daemon.
 */
export async function deliverEvents(live: LiveContext, stop: AbortSignal): Promise<void> {
  const rounds = new Map<string, Promise<void>>();
  const known = new Map<string, Progress>();
  const limits = new DiscordLimits();
  const { clock } = live.current;
  while (!stop.aborted) {
    const waitMs = await startRounds(live, { rounds, known, limits, stop }).then(
      (webhooks) => (webhooks > 0 ? lookEveryMs : idleMs),
      (error) => {
        live.current.log.error({ err: error }, 'the webhooks could not be read; trying again');
        return restMs;
      },
    );
    await clock.sleep(waitMs, stop).catch(() => undefined);
  }
  await Promise.all(rounds.values());
}

interface Work {
  rounds: Map<string, Promise<void>>;
  /** The webhook that has waited longest is first. */
  known: Map<string, Progress>;
  limits: DiscordLimits;
  stop: AbortSignal;
}

/**
 * Each target has one round at a time, so a slow one delays no other. Resolves with the number of webhooks that this
 * daemon serves.
 */
async function startRounds(live: LiveContext, { rounds, known, limits, stop }: Work): Promise<number> {
  const { ids, count } = await webhooksToServe(live.current);
  const order = [...known.keys()];
  for (const id of ids.toSorted((one, other) => order.indexOf(one) - order.indexOf(other))) {
    if (rounds.has(id) || rounds.size >= maxRounds) continue;
    const progress = known.get(id) ?? { lookedTo: { alarms: 0, log: 0 } };
    known.delete(id);
    known.set(id, progress); // makes it the last one
    const round = deliverTo(() => live.current, id, { progress, limits, signal: stop })
      .catch(async (error) => {
        if (stop.aborted) return;
        live.current.log.error({ err: error, webhookId: id }, 'events could not be delivered; trying again');
        await live.current.clock.sleep(restMs, stop).catch(() => undefined);
      })
      .finally(() => rounds.delete(id));
    rounds.set(id, round);
  }
  return count;
}
