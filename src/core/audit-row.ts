import { crypto } from '../base/node-modules.ts';
import { type AuditRow, type ChainLink, commitmentTo, linkHash } from './audit.ts';
import type { DomainEvent } from './events.ts';
import type { AuditEvent } from './model.ts';

/** The row of an event after `last`, with fresh salts for the people it names. */
export function rowAfter(last: ChainLink, { detail, people: named = {}, ...event }: DomainEvent): AuditRow {
  const people = Object.entries(named).map(([field, userId]) => ({ field, userId, salt: newSalt() }));
  const commitments = Object.fromEntries(people.map(({ field, ...person }) => [field, commitmentTo(person)]));
  const row = { ...event, id: last.id + 1, detail: JSON.stringify({ ...commitments, ...detail }) };
  return { ...row, people, hash: linkHash(last.hash, row) };
}

/** The event of a row, including the people it names. */
export function eventOf({ hash: _, detail, people, ...event }: AuditRow): AuditEvent {
  return {
    ...event,
    detail: { ...JSON.parse(detail), ...Object.fromEntries(people.map(({ field, userId }) => [field, userId])) },
  };
}

/** A fresh salt, in hex. Without it, a commitment could be opened by trying every user id. */
function newSalt(): string {
  return crypto().randomBytes(16).toString('hex');
}
