import { systemClock } from '../../../base/clock.ts';
import type { AuditEvent } from '../../../core/model.ts';
import type { AuditFilter, AuditStore } from '../../../ports/index.ts';
import type { Cli } from '../../cli.ts';
import { printable } from '../../output/safe-text.ts';
import { eventDocument, eventRow } from './event-document.ts';

const pollMs = 500;
const pageRows = 500;

/** Prints the newest events in the order in which they happened, then every new one, until the process is asked to stop. */
export async function followEvents(
  cli: Cli,
  store: Pick<AuditStore, 'listAudit'>,
  { limit, ...filter }: AuditFilter,
): Promise<void> {
  const stopping = new AbortController();
  void Promise.race([cli.io.stopSignal, cli.io.readerGone]).then(() => stopping.abort());
  let position = await newestId(store);
  const recent = await store.listAudit({ ...filter, beforeId: position + 1, limit });
  for (const event of recent.reverse()) print(cli, event);
  while (!stopping.signal.aborted) {
    const end = await newestId(store);
    const fresh = await store.listAudit({
      ...filter,
      afterId: position,
      beforeId: end + 1,
      oldestFirst: true,
      limit: pageRows,
    });
    for (const event of fresh) print(cli, event);
    const isMore = fresh.length === pageRows;
    position = isMore ? (fresh.at(-1)?.id ?? end) : end;
    if (!isMore) await systemClock.sleep(pollMs, stopping.signal).catch(() => undefined);
  }
}

async function newestId(store: Pick<AuditStore, 'listAudit'>): Promise<number> {
  const [newest] = await store.listAudit({ limit: 1 });
  return newest?.id ?? 0;
}

function print(cli: Cli, event: AuditEvent): void {
  cli.print({ event: eventDocument(event) }, eventRow(event).map(printable).join('  '));
}
