import { hash } from 'node:crypto';
import type { AuditEvent } from './model.ts';

/**
 * The audit is a chain: each row holds the SHA-256 over the hash of the row before it and all that the row says. What the
 * chain shows is that nothing in it was edited, taken out, put in between or moved. A head hash noted elsewhere shows that
 * the rows up to it are still the ones of then: only that holds against somebody who can write the whole file anew.
 */

/** A row as it is kept. Its `hash` (hex) is over this very text of `detail`. */
export interface AuditRow extends Omit<AuditEvent, 'detail'> {
  /** JSON. */
  detail: string;
  hash: string;
}

/** Where a chain begins or has got to: ids count up by one. */
export type ChainLink = Pick<AuditRow, 'id' | 'hash'>;

/** What comes before the very first row. */
export const chainStart: ChainLink = { id: 0, hash: '0'.repeat(64) };

/** `missing`: rows from `id` to `toId` are gone. `changed`: row `id` does not follow from the one before it. */
export type ChainBreak = { kind: 'missing'; id: number; toId: number } | { kind: 'changed'; id: number };

/** The hash of a row that follows `previous` (hex). */
export function linkHash(previous: string, { id, at, by, action, subject, detail }: Omit<AuditRow, 'hash'>): string {
  return hash('sha256', JSON.stringify([previous, id, at, by, action, subject, detail]));
}

/** Whether a row follows the one before it; `undefined` where it does. */
export function breakBetween(before: ChainLink, row: AuditRow): ChainBreak | undefined {
  if (row.id !== before.id + 1) return { kind: 'missing', id: before.id + 1, toId: row.id - 1 };
  return row.hash === linkHash(before.hash, row) ? undefined : { kind: 'changed', id: row.id };
}
