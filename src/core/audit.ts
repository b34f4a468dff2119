import { RankdError } from '../base/errors.ts';
import { crypto } from '../base/node-modules.ts';
import { isoTime } from '../base/time.ts';
import type { AuditEvent } from './model.ts';

/**
 * The audit log is a hash chain: each row stores the SHA-256 of the previous row's hash and its own content. An intact
 * chain shows that no row was edited, removed, inserted or moved. But an attacker who can write the whole log can
 * recompute the chain, so only a head hash that is stored elsewhere proves that the rows up to it are unchanged.
 */

/** A stored row. `hash` (hex) covers the exact text of `detail`. */
export interface AuditRow extends Omit<AuditEvent, 'detail'> {
  /** JSON. */
  detail: string;
  hash: string;
  people: AuditPerson[];
}

/** A person named in a row. In the row's `detail`, `field` contains only a commitment to the person. */
export interface AuditPerson {
  field: string;
  /** A pseudonym once the person is forgotten. */
  userId: number;
  /** Hex; null once the person is forgotten, so that the commitment can no longer be linked to anyone. */
  salt: string | null;
}

export interface AuditMention {
  eventId: number;
  field: string;
}

/** A mention of a forgotten person. A pseudonym has replaced the user id, and the salt has been deleted. */
export interface EmptiedMention extends AuditMention {
  pseudonym: number;
}

/**
 * Returns a hash that binds a `person.forget` event to the mentions that it emptied, so that the event can't be used to
 * justify emptying others.
 */
export function mentionsHash(mentions: readonly AuditMention[]): string {
  const inOrder = mentions.map(({ eventId, field }) => `${eventId}:${field}`).toSorted();
  return crypto().hash('sha256', inOrder.join('\n'));
}

/**
 * Compares the emptied mentions with the `person.forget` events. Returns a break for each mention that no event
 * explains, and for each event whose mentions differ from the emptied ones.
 */
export function unexplainedMentions(
  emptied: readonly EmptiedMention[],
  forgetEvents: readonly AuditRow[],
): ChainBreak[] {
  const byPseudonym = Map.groupBy(emptied, ({ pseudonym }) => String(pseudonym));
  const mismatched = forgetEvents.filter(({ subject, detail }) => {
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
 * Returns the commitment that replaces a user id in the chain. Without the salt, the commitment can't be matched to the
 * id.
 */
export function commitmentTo({ userId, salt }: { userId: number; salt: string }): string {
  return crypto().hash('sha256', `${salt}:${userId}`);
}

/** A point in the chain: a row's id and its hash. Ids are consecutive. */
export type ChainLink = Pick<AuditRow, 'id' | 'hash'>;

export const chainStart: ChainLink = { id: 0, hash: '0'.repeat(64) };

/**
 * `missing`: rows `id` to `toId` are gone. `unexplained`: the first rows of the log, `id` to `toId`, are gone, and
 * retention did not remove them. `changed`: the hash of row `id` does not match its content and the previous row; a
 * person in the row was removed, or was replaced without a `person.forget` event; or the row was inserted where
 * retention had removed rows. `rewritten`: the hash of row `id` differs from the recorded head. `mentions`: row `id`
 * records that a person was forgotten, but does not match the mentions that were emptied.
 */
export type ChainBreak =
  | { kind: 'missing' | 'unexplained'; id: number; toId: number }
  | { kind: 'changed' | 'rewritten' | 'mentions'; id: number };

/** Returns a row's hash, given the hash of the previous row. Both are in hex. */
export function linkHash(
  previous: string,
  { id, at, by, action, subject, detail }: Omit<AuditRow, 'hash' | 'people'>,
): string {
  return crypto().hash('sha256', JSON.stringify([previous, id, at, by, action, subject, detail]));
}

export const forgetAction = 'person.forget';

/**
 * Retention records an event with this action before it removes rows. Verification reports rows that are missing
 * without one.
 */
export const pruneAction = 'audit.prune';

/**
 * True if the event explains why the rows up to `anchor` are gone. It may announce that more will be removed, because
 * retention may still be running.
 */
export function explains({ action, detail }: AuditRow, anchor: ChainLink): boolean {
  if (action !== pruneAction) return false;
  const { upToId, upToHash } = JSON.parse(detail) as { upToId?: number; upToHash?: string };
  if (upToId === undefined || upToId < anchor.id) return false;
  return upToId > anchor.id || upToHash === anchor.hash;
}

/** Returns a line for the audit head file, e.g. `2026-05-01T18:00:00.000Z 42 4f1c…`. `at`: epoch milliseconds. */
export function headLine({ id, hash }: ChainLink, at: number): string {
  return `${isoTime(at)} ${id} ${hash}\n`;
}

/** Returns the head from a line that may contain other text; `undefined` if the line contains no head. */
export function headIn(line: string): ChainLink | undefined {
  const [, id, hash] = /(?:^|\s)(\d{1,15}) ([\da-f]{64})\b/.exec(line) ?? [];
  return id === undefined || hash === undefined ? undefined : { id: Number(id), hash };
}

/**
 * Returns the last of the leading `rows` that can be removed, or `before`, the link before them, if the first one must
 * stay. Throws `conflict` if the chain is broken.
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

export function breakBetween(before: ChainLink, row: AuditRow): ChainBreak | undefined {
  if (row.id !== before.id + 1) return { kind: 'missing', id: before.id + 1, toId: row.id - 1 };
  const isWhole = row.hash === linkHash(before.hash, row) && hasExpectedPeople(row);
  return isWhole ? undefined : { kind: 'changed', id: row.id };
}

/** False if a person was removed from the row or replaced without having been forgotten. */
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

const personalFields = ['rankeeId', 'rankerId'] as const;

export type PersonalField = (typeof personalFields)[number];

/**
 * Returns a random number to replace a forgotten person's id. It is not derived from the id, so it can't be traced
 * back.
 */
export function newPseudonym(): number {
  return -crypto().randomInt(1, 2 ** 47);
}

/** True for a forgotten person's id: user ids are never negative. */
export function isPseudonym(userId: number): boolean {
  return userId < 0;
}
