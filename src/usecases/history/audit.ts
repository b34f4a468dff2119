import { isoTime } from '../../base/time.ts';
import { discordPrefix, personBehind } from '../../core/discord-person.ts';
import { simulatedGroup } from '../../core/group-title.ts';
import type { AuditEvent } from '../../core/model.ts';
import type { AuditFilter, Ports } from '../../ports/index.ts';
import type { AuditVerdict } from './verify-audit.ts';

export interface AuditEventView {
  event: AuditEvent;
  keyName: string | undefined;
  keyNames: ReadonlyMap<string, string>;
  roleNames: ReadonlyMap<number, string>;
}

/** Lists events, newest first. */
export async function listEvents({ store }: Pick<Ports, 'store'>, filter: AuditFilter): Promise<AuditEventView[]> {
  const events = await withPeople(store, await store.listAudit(filter));
  const ids = events.flatMap(({ by, subject, detail }) => [keyIdIn(by), subject, detail['keyId']]);
  const keyIds = [...new Set(ids.filter((id) => typeof id === 'string' && id.startsWith('key_')))] as string[];
  const keys = keyIds.length === 0 ? [] : await store.listKeys({ ids: keyIds });
  const keyNames = new Map(keys.map(({ id, name }) => [id, name]));
  const groups = [simulatedGroup, (await store.findServedGroup())?.group ?? []].flat();
  const roles = await Promise.all(groups.map((group) => store.findRoles(group)));
  const roleNames = new Map(roles.flat().map(({ id, name }) => [id, name]));
  return events.map((event) => ({ event, keyName: keyNames.get(keyIdIn(event.by) ?? ''), keyNames, roleNames }));
}

/** Replaces each commitment that the audit log stores for a Discord user with the user's Discord id. */
async function withPeople(
  store: Pick<Ports['store'], 'listDiscordPeople'>,
  events: AuditEvent[],
): Promise<AuditEvent[]> {
  if (!events.some(({ by, subject }) => by.startsWith(discordPrefix) || subject.startsWith(discordPrefix)))
    return events;
  const people = await store.listDiscordPeople();
  const named = (text: string) => {
    const person = personBehind(text, people);
    return person === undefined ? text : discordPrefix + person.discordId;
  };
  return events.map((event) => ({ ...event, by: named(event.by), subject: named(event.subject) }));
}

function keyIdIn(by: string): string | undefined {
  return by.startsWith('key:') ? by.slice('key:'.length) : undefined;
}

const pageRows = 500;

/** Yields the newest `limit` events page by page, newest first, so that memory use does not grow with `limit`. */
export async function* eventPages(
  { store }: Pick<Ports, 'store'>,
  { limit, ...selection }: AuditFilter,
): AsyncGenerator<AuditEvent[]> {
  let position: Pick<AuditFilter, 'beforeId'> = {};
  for (let left = limit; left > 0; left -= pageRows) {
    const rows = Math.min(left, pageRows);
    const events = await store.listAudit({ ...selection, ...position, limit: rows });
    yield await withPeople(store, events);
    const last = events.at(-1);
    if (last === undefined || events.length < rows) return;
    position = { beforeId: last.id };
  }
}

const pollMs = 500;

/** Yields the newest `limit` events in chronological order, then each new event, until `stop` is aborted. */
export async function* followEvents(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  { limit, ...selection }: AuditFilter,
  stop: AbortSignal,
): AsyncGenerator<AuditEvent> {
  const newestId = async () => (await store.listAudit({ limit: 1 }))[0]?.id ?? 0;
  let position = await newestId();
  const recent = await store.listAudit({ ...selection, beforeId: position + 1, limit });
  yield* await withPeople(store, recent.reverse());
  while (!stop.aborted) {
    const end = await newestId();
    const page = { afterId: position, beforeId: end + 1, oldestFirst: true, limit: pageRows };
    const fresh = await store.listAudit({ ...selection, ...page });
    yield* await withPeople(store, fresh);
    const hasMore = fresh.length === pageRows;
    position = hasMore ? (fresh.at(-1)?.id ?? end) : end;
    if (!hasMore) await clock.sleep(pollMs, stop).catch(() => undefined);
  }
}

export function eventDocument({ id, at, by, action, subject, detail }: AuditEvent) {
  return { id, at: isoTime(at), by, action, subject, detail };
}

export function verdictDocument(verdict: AuditVerdict) {
  const { rows, anchor, head, breaks, breakCount, notedHead, notedHeads } = verdict;
  return {
    intact: verdict.isIntact,
    events: rows,
    head: head.hash,
    headId: head.id,
    removedUpTo: anchor.id > 0 ? anchor.id : null,
    notedHead: notedHead ?? null,
    notedHeads: notedHeads ?? null,
    breakCount,
    breaks,
  };
}
