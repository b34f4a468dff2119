import { RankdError } from '../base/errors.ts';
import { crypto } from '../base/node-modules.ts';
import { isoTime } from '../base/time.ts';
import type { AuditEvent } from './model.ts';

/**
 * The audit log is a hash chain: each row holds the SHA-256 over the previous row's hash and the row's own content. An
 * intact chain shows that no row was edited, removed, inserted or moved. But an attacker who can write the whole file
 * can compute a new chain; only a head hash stored elsewhere shows that the rows up to it are unchanged.
 */

/** A stored row. Its `hash` (hex) covers `detail` as this exact text. */
export interface AuditRow extends Omit<AuditEvent, 'detail'> {
  /** JSON. */
  detail: string;
  hash: string;
  people: AuditPerson[];
}

/** A person named in a row. In the row's `detail`, the field holds a commitment to the person. */
export interface AuditPerson {
  /** A field of `detail`. */
  field: string;
  /** A pseudonym if the person was forgotten. */
  userId: number;
  /** Hex; null once the person is forgotten: the commitment can then no longer be linked to anyone. */
  salt: string | null;
}

/** A field of an event that named a person. */
export interface AuditMention {
  eventId: number;
  field: string;
}

/** A mention that `forget` emptied: a pseudonym replaces the person, and the salt is deleted. */
export interface EmptiedMention extends AuditMention {
  pseudonym: number;
}

/**
 * Returns a hash that binds a `person.forget` event to the mentions that it emptied, so that the event can't justify
 * emptying other mentions.
 */
export function mentionsHash(mentions: readonly AuditMention[]): string {
  const inOrder = mentions.map(({ eventId, field }) => `${eventId}:${field}`).toSorted();
  return crypto().hash('sha256', inOrder.join('\n'));
}

/**
 * Compares the emptied mentions with the `person.forget` events. Returns a break for each mention that no event
 * explains, and for each event whose mentions differ from the emptied ones.
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

/**
 * Returns the commitment that replaces a user id in the chain. It can be matched with the id only if the salt is known.
 */
export function commitmentTo({ userId, salt }: { userId: number; salt: string }): string {
  return crypto().hash('sha256', `${salt}:${userId}`);
}

/** A point in the chain: a row's id and its hash. Ids are consecutive. */
export type ChainLink = Pick<AuditRow, 'id' | 'hash'>;

/** The link before the first row. */
export const chainStart: ChainLink = { id: 0, hash: '0'.repeat(64) };

/**
 * `missing`: rows `id` to `toId` are gone. `unexplained`: rows `id` to `toId` at the beginning are gone, and retention
 * did not remove them. `changed`: row `id` does not follow from the previous one, or a person in it was replaced
 * without a `person.forget` event. `rewritten`: row `id` differs from the one whose hash was recorded. `mentions`: row
 * `id` records that a person was forgotten, but its mentions differ from the emptied ones.
 */
export type ChainBreak =
  | { kind: 'missing' | 'unexplained'; id: number; toId: number }
  | { kind: 'changed' | 'rewritten' | 'mentions'; id: number };

/** Returns the hash (hex) of a row that follows `previous`. */
export function linkHash(
  previous: string,
  { id, at, by, action, subject, detail }: Omit<AuditRow, 'hash' | 'people'>,
): string {
  return crypto().hash('sha256', JSON.stringify([previous, id, at, by, action, subject, detail]));
}

export const forgetAction = 'person.forget';

/** Retention writes an event with this action before it removes rows. Without that event, the removal is a break. */
export const pruneAction = 'audit.prune';

/** True if the row announces that retention removes the rows up to `anchor`, or more: it may still be running. */
export function explains({ action, detail }: AuditRow, anchor: ChainLink): boolean {
  if (action !== pruneAction) return false;
  const { upToId, upToHash } = JSON.parse(detail) as { upToId?: number; upToHash?: string };
  if (upToId === undefined || upToId < anchor.id) return false;
  return upToId > anchor.id || upToHash === anchor.hash;
}

/**
 * Returns a line for the audit head file: the time `at` (epoch milliseconds), the id and the hash, e.g.
 * `2026-05-01T18:00:00.000Z 42 4f1c…`.
 */
export function headLine({ id, hash }: ChainLink, at: number): string {
  return `${isoTime(at)} ${id} ${hash}\n`;
}

/** Returns the head in a line, ignoring other text, or `undefined` if the line has none. */
export function headIn(line: string): ChainLink | undefined {
  const [, id, hash] = /(?:^|\s)(\d{1,15}) ([\da-f]{64})\b/.exec(line) ?? [];
  return id === undefined || hash === undefined ? undefined : { id: Number(id), hash };
}

/**
 * Returns the last row that may be removed together with all `rows` before it. Returns `before`, the link before the
 * first row, if no row may be removed. Throws `conflict` if the chain is broken.
 */
export function lastRemovable(
  before: ChainLink,
  rows: readonly AuditRow[],
  mayRemove: (row: AuditRow) => boolean,
): ChainLink {
  let last = before;
  for (const row of rows) {
    if (!mayRemove(row)) break;
    if (breakBetween(last, row) !== undefined) throw brokenAudit(row.id);
    last = { id: row.id, hash: row.hash };
  }
  return last;
}

function brokenAudit(id: number): RankdError {
  return new RankdError('conflict', `The audit is broken at event #${id}, so retention removes none of it.`, {
    hint: 'rankd audit verify',
  });
}

/** Returns the break between a link and the next row, or `undefined` if the chain is intact there. */
export function breakBetween(before: ChainLink, row: AuditRow): ChainBreak | undefined {
  if (row.id !== before.id + 1) return { kind: 'missing', id: before.id + 1, toId: row.id - 1 };
  const isWhole = row.hash === linkHash(before.hash, row) && hasExpectedPeople(row);
  return isWhole ? undefined : { kind: 'changed', id: row.id };
}

/** True unless a person was removed from the row without being forgotten, or was replaced. */
function hasExpectedPeople({ detail, people }: AuditRow): boolean {
  const fields: Record<string, unknown> = JSON.parse(detail);
  const isNamed = (name: string) => people.some(({ field }) => field === name);
  return (
    personalFields.every((name) => typeof fields[name] !== 'string' || isNamed(name)) &&
    people.every(({ field, userId, salt }) => {
      return salt === null ? isPseudonym(userId) : fields[field] === commitmentTo({ userId, salt });
    })
  );
}

/** The `detail` fields that name people. */
const personalFields = ['rankeeId', 'rankerId'] as const;

export type PersonalField = (typeof personalFields)[number];

/**
 * Returns a random number that replaces a forgotten person. It is not derived from the user id, so it can't be traced
 * back.
 */
export function newPseudonym(): number {
  return -crypto().randomInt(1, 2 ** 47);
}

/** True for a forgotten person's id: user ids are never negative. */
export function isPseudonym(userId: number): boolean {
  return userId < 0;
}
