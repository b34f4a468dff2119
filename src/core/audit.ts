import { RankdError } from '../base/errors.ts';
import { crypto } from '../base/node-modules.ts';
import { isoTime } from '../base/time.ts';
import type { AuditEvent } from './model.ts';
import { isPseudonym } from './pseudonym.ts';

/**
 * The audit is a chain: each row holds the SHA-256 over the hash of the row before it and all that the row says. The chain
 * shows that no row was edited, removed, inserted or moved. Somebody who can write the whole file can compute a new chain; only
 * a head hash that was noted elsewhere shows that the rows up to it are still the same.
 */

/** A row as it is kept. Its `hash` (hex) covers `detail` as this very text. */
export interface AuditRow extends Omit<AuditEvent, 'detail'> {
  /** JSON. */
  detail: string;
  hash: string;
  people: AuditPerson[];
}

/** A person whom a row names. In the `detail` of the row, the field holds `commitmentTo` the person. */
export interface AuditPerson {
  /** Of `detail`. */
  field: string;
  /** Or the pseudonym of a person who was forgotten. */
  userId: number;
  /** Hex; null once the person was forgotten: then nothing shows any more to whom the commitment was. */
  salt: string | null;
}

/** A field of an event that named a person. */
export interface AuditMention {
  eventId: number;
  field: string;
}

/** A mention that `forget` emptied: a pseudonym replaces the person, and the salt is gone. */
export interface EmptiedMention extends AuditMention {
  pseudonym: number;
}

/** Binds a `person.forget` event to the mentions that it emptied, so that no other mention can be emptied in its name. */
export function mentionsHash(mentions: readonly AuditMention[]): string {
  const inOrder = mentions.map(({ eventId, field }) => `${eventId}:${field}`).toSorted();
  return crypto().hash('sha256', inOrder.join('\n'));
}

/**
 * The breaks that `emptied`, all emptied mentions of one moment, show against the `person.forget` events of that moment: a mention
 * that no such event explains, and an event whose mentions differ in number or place from the ones it emptied.
 */
export function unexplainedMentions(emptied: readonly EmptiedMention[], forgets: readonly AuditRow[]): ChainBreak[] {
  const byPseudonym = Map.groupBy(emptied, ({ pseudonym }) => String(pseudonym));
  const mismatched = forgets.filter(({ subject, detail }) => {
    const found = byPseudonym.get(subject) ?? [];
    byPseudonym.delete(subject);
    const recorded = JSON.parse(detail) as { mentions?: number; mentionsHash?: string };
    return recorded.mentions !== found.length || recorded.mentionsHash !== mentionsHash(found);
  });
  return [
    ...mismatched.map(({ id }): ChainBreak => ({ kind: 'mentions', id })),
    ...[...byPseudonym.values()].flat().map(({ eventId }): ChainBreak => ({ kind: 'changed', id: eventId })),
  ];
}

/** What the chain holds in the place of a user id: it can be compared with the id, and tells nothing without the salt. */
export function commitmentTo({ userId, salt }: { userId: number; salt: string }): string {
  return crypto().hash('sha256', `${salt}:${userId}`);
}

/** A point in the chain: a row's id and its hash. Ids count up by one. */
export type ChainLink = Pick<AuditRow, 'id' | 'hash'>;

/** What comes before the very first row. */
export const chainStart: ChainLink = { id: 0, hash: '0'.repeat(64) };

/**
 * `missing`: rows from `id` to `toId` are gone. `unexplained`: the same, at the beginning, where it was not retention that removed them.
 * `changed`: row `id` does not follow from the one before it. `rewritten`: row `id` is not the one whose hash was noted.
 * `mentions`: row `id` records that a person was forgotten, and other mentions are empty than the ones it emptied.
 */
export type ChainBreak =
  | { kind: 'missing' | 'unexplained'; id: number; toId: number }
  | { kind: 'changed' | 'rewritten' | 'mentions'; id: number };

/** The hash of a row that follows `previous` (hex). */
export function linkHash(
  previous: string,
  { id, at, by, action, subject, detail }: Omit<AuditRow, 'hash' | 'people'>,
): string {
  return crypto().hash('sha256', JSON.stringify([previous, id, at, by, action, subject, detail]));
}

/** The event that `forget` writes. */
export const forgetAction = 'person.forget';

/** The event that retention writes before it removes the rows up to one: without it, nobody may have removed them. */
export const pruneAction = 'audit.prune';

/** Whether the row says that retention was to remove the rows up to `anchor`. Retention may still be on its way to what it said. */
export function explains({ action, detail }: AuditRow, anchor: ChainLink): boolean {
  if (action !== pruneAction) return false;
  const { upToId, upToHash } = JSON.parse(detail) as { upToId?: number; upToHash?: string };
  if (upToId === undefined || upToId < anchor.id) return false;
  return upToId > anchor.id || upToHash === anchor.hash;
}

/** A line for the file in which heads are noted at that time (epoch milliseconds), e.g. `2026-05-01T18:00:00.000Z 42 4f1c…`. */
export function headLine({ id, hash }: ChainLink, at: number): string {
  return `${isoTime(at)} ${id} ${hash}\n`;
}

/** The head that a line notes, whatever stands around it; `undefined` if it notes none. */
export function headIn(line: string): ChainLink | undefined {
  const [, id, hash] = /(?:^|\s)(\d{1,15}) ([\da-f]{64})\b/.exec(line) ?? [];
  return id === undefined || hash === undefined ? undefined : { id: Number(id), hash };
}

/**
 * The last of the `rows` from the first on that may all go; `before`, which the first of them follows, if none may. Throws `conflict`
 * where the chain is broken.
 */
export function lastToGo(before: ChainLink, rows: readonly AuditRow[], mayGo: (row: AuditRow) => boolean): ChainLink {
  let last = before;
  for (const row of rows) {
    if (!mayGo(row)) break;
    if (breakBetween(last, row) !== undefined) throw brokenAt(row.id);
    last = { id: row.id, hash: row.hash };
  }
  return last;
}

/** Why retention leaves an audit alone. */
function brokenAt(id: number): RankdError {
  return new RankdError('conflict', `The audit is broken at event #${id}, so retention removes none of it.`, {
    hint: 'rankd audit verify',
  });
}

/** What is wrong between a row and the one before it; `undefined` if it follows. */
export function breakBetween(before: ChainLink, row: AuditRow): ChainBreak | undefined {
  if (row.id !== before.id + 1) return { kind: 'missing', id: before.id + 1, toId: row.id - 1 };
  const isWhole = row.hash === linkHash(before.hash, row) && namesThoseMeant(row);
  return isWhole ? undefined : { kind: 'changed', id: row.id };
}

/** False if a person was taken out of the row without being forgotten, or another one put in. */
function namesThoseMeant({ detail, people }: AuditRow): boolean {
  const fields: Record<string, unknown> = JSON.parse(detail);
  const isNamed = (name: string) => people.some(({ field }) => field === name);
  return (
    personalFields.every((name) => typeof fields[name] !== 'string' || isNamed(name)) &&
    people.every(({ field, userId, salt }) => {
      return salt === null ? isPseudonym(userId) : fields[field] === commitmentTo({ userId, salt });
    })
  );
}

/** The fields of details that name people. */
const personalFields = ['rankeeId', 'rankerId'] as const;

export type PersonalField = (typeof personalFields)[number];
