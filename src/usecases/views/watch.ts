import type { DaemonContext, LiveContext } from '../daemon-context.ts';
import { newestEvent } from '../history/audit-heads.ts';
import type { DaemonStatus } from '../upkeep/status-document.ts';

type View = 'status' | 'budget' | 'changes' | 'keys' | 'suspensions' | 'webhooks' | 'chart' | 'run';

const readEveryMs = 500;
const daemonEveryMs = 2_000;
/** The pause after a failed read. */
const restMs = 5_000;
const maxEvents = 200;

/** The views that an audit event affects, keyed by the first word of its action. */
const viewsOf: Record<string, readonly View[]> = {
  rank: ['changes', 'suspensions', 'chart', 'keys', 'status'],
  person: ['changes', 'suspensions'],
  history: ['changes'],
  suspension: ['suspensions', 'status'],
  key: ['keys', 'status'],
  whitelist: ['keys'],
  webhook: ['webhooks', 'status'],
};

interface Watching {
  live: LiveContext;
  status(): Promise<DaemonStatus>;
  notify(views: Set<View>): void;
}

/**
 * Reports changed views until `stop` is aborted. Polls the audit log, which also records changes made by commands
 * outside the daemon. Also compares the webhooks, the budget and the status, which can change without an event.
 */
export async function watchViews({ live, status, notify }: Watching, stop: AbortSignal): Promise<void> {
  const { clock, log } = live.current;
  let seen: Seen | undefined;
  while (!stop.aborted) {
    let waitMs = readEveryMs;
    try {
      const now = await readViews(live.current, status, seen);
      if (seen !== undefined && now.views.size > 0) notify(now.views);
      seen = now.seen;
    } catch (error) {
      log.warn({ err: error }, 'the data for the page could not be read; retrying');
      waitMs = restMs;
    }
    await clock.sleep(waitMs, stop).catch(() => undefined);
  }
}

/** The state at the last check, in a form that can be compared. */
interface Seen {
  eventId: number;
  webhooks: string;
  daemon: DaemonMarks;
}

interface DaemonMarks {
  at: number;
  budget: string;
  status: string;
}

async function readViews(
  app: DaemonContext,
  status: () => Promise<DaemonStatus>,
  seen: Seen | undefined,
): Promise<{ views: Set<View>; seen: Seen }> {
  const afterId = seen?.eventId ?? (await newestEvent(app));
  const events = await app.store.listAudit({ afterId, oldestFirst: true, limit: maxEvents });
  const views = new Set(events.flatMap(({ action }) => viewsOf[action.split('.', 1)[0] ?? ''] ?? ofOthers));
  const webhooks = JSON.stringify(await app.store.listWebhooks()); // deliveries cause no audit event
  const now = app.clock.monotonic();
  const isDue = seen === undefined || now - seen.daemon.at >= daemonEveryMs;
  const daemon = isDue ? { at: now, ...marksOf(await status()) } : seen.daemon;
  if (seen !== undefined && webhooks !== seen.webhooks) views.add('webhooks');
  if (seen !== undefined && daemon.budget !== seen.daemon.budget) views.add('budget');
  if (seen !== undefined && daemon.status !== seen.daemon.status) views.add('status');
  return { views, seen: { eventId: events.at(-1)?.id ?? afterId, webhooks, daemon } };
}

const ofOthers: readonly View[] = ['status'];

function marksOf(status: DaemonStatus): Omit<DaemonMarks, 'at'> {
  const { uptimeSeconds: _, budget, callsWaiting, requestsInFlight, ...rest } = status;
  return { budget: JSON.stringify([budget, callsWaiting, requestsInFlight]), status: JSON.stringify(rest) };
}
