import type { AuditFilter, AuditStore } from '../../../ports/index.ts';
import type { Cli } from '../../cli.ts';
import { csvLine } from '../../output/csv.ts';
import { eventDocument } from './event-document.ts';

const pageRows = 500;
const columns = ['id', 'at', 'by', 'action', 'subject', 'detail'];

/** Prints the events as CSV, newest first, page by page: memory stays flat however many there are. */
export async function exportEvents(
  cli: Cli,
  store: Pick<AuditStore, 'listAudit'>,
  { filter, most = Number.POSITIVE_INFINITY }: { filter: Omit<AuditFilter, 'limit'>; most: number | undefined },
): Promise<void> {
  cli.io.stdout(csvLine(columns));
  let position: Pick<AuditFilter, 'beforeId'> = {};
  for (let left = most; left > 0; left -= pageRows) {
    const limit = Math.min(left, pageRows);
    const events = await store.listAudit({ ...filter, ...position, limit });
    const lines = events
      .map(eventDocument)
      .map(({ detail, ...event }) => csvLine([...Object.values(event), JSON.stringify(detail)]));
    cli.io.stdout(lines.join(''));
    await cli.io.drained();
    const last = events.at(-1);
    if (last === undefined || events.length < limit) return;
    position = { beforeId: last.id };
  }
}
