import type { AuditEvent } from '../../core/model.ts';
import type { AuditFilter, Ports } from '../../ports/index.ts';
import { type OnAmbiguity, requireKeySince } from '../keys/find-key.ts';

/** Which events are meant; the key by id or name. */
export interface AuditQuery extends Pick<AuditFilter, 'by' | 'action' | 'subject' | 'since' | 'until'> {
  key: string | undefined;
}

export type EventSelection = Omit<AuditFilter, 'limit'>;

/** The same with the key's id, for the use cases on events. Throws `not_found` for a key that does not exist. */
export async function selectEvents(
  { store }: Pick<Ports, 'store'>,
  { key: idOrName, ...selection }: AuditQuery,
  onAmbiguity: OnAmbiguity,
): Promise<EventSelection> {
  if (idOrName === undefined) return selection;
  const { id } = await requireKeySince({ store }, { idOrName, since: selection.since }, onAmbiguity);
  return { ...selection, keyId: id };
}

/** Newest first. */
export function listEvents({ store }: Pick<Ports, 'store'>, filter: AuditFilter): Promise<AuditEvent[]> {
  return store.listAudit(filter);
}

const pageRows = 500;

/** The newest `limit` events, newest first, page by page: memory stays flat however many there are. */
export async function* eventPages(
  { store }: Pick<Ports, 'store'>,
  { limit, ...selection }: AuditFilter,
): AsyncGenerator<AuditEvent[]> {
  let position: Pick<AuditFilter, 'beforeId'> = {};
  for (let left = limit; left > 0; left -= pageRows) {
    const rows = Math.min(left, pageRows);
    const events = await store.listAudit({ ...selection, ...position, limit: rows });
    yield events;
    const last = events.at(-1);
    if (last === undefined || events.length < rows) return;
    position = { beforeId: last.id };
  }
}

const pollMs = 500;

/** The newest `limit` events in the order in which they happened, then every new one, until the signal is aborted. */
export async function* followEvents(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { limit, ...selection }: AuditFilter,
  stop: AbortSignal,
): AsyncGenerator<AuditEvent> {
  const newestId = async () => (await store.listAudit({ limit: 1 }))[0]?.id ?? 0;
  let position = await newestId();
  const recent = await store.listAudit({ ...selection, beforeId: position + 1, limit });
  yield* recent.reverse();
  while (!stop.aborted) {
    const end = await newestId();
    const page = { afterId: position, beforeId: end + 1, oldestFirst: true, limit: pageRows };
    const fresh = await store.listAudit({ ...selection, ...page });
    yield* fresh;
    const isMore = fresh.length === pageRows;
    position = isMore ? (fresh.at(-1)?.id ?? end) : end;
    if (!isMore) await clock.sleep(pollMs, stop).catch(() => undefined);
  }
}
