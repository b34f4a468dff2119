import type { AuditEvent, RankChange } from './model.ts';

/**
 * What happened, as a value. A store keeps an event in the transaction of what it tells of; the audit numbers and chains them.
 * No `detail` ever holds a secret or its hash.
 */
export type DomainEvent = Omit<AuditEvent, 'id'>;

/** A step in the life of a rank change, at that time (epoch milliseconds). */
export function changeEvent(
  change: RankChange,
  step: RankChange['state'] | 'begin' | 'roll_back',
  at: number,
): DomainEvent {
  const { id, by, rankeeId, code, rolesBefore, rolesAfter, keyId, placeId, undoId, dryRun } = change;
  const detail = { rankeeId, code, rolesBefore, rolesAfter, keyId, placeId, undoId, ...(dryRun && { dryRun }) };
  return { at, by, action: `rank.${step}`, subject: id, detail };
}

/** The circuit breaker, or an operator, pauses a key. */
export function keyPaused({ keyId, reason }: { keyId: string; reason: string }, { by, at }: Doing): DomainEvent {
  return { at, by, action: 'key.pause', subject: keyId, detail: { reason } };
}

export function keyResumed({ keyId, reason }: { keyId: string; reason: string }, { by, at }: Doing): DomainEvent {
  return { at, by, action: 'key.resume', subject: keyId, detail: { reason } };
}

/** Who does it, as the audit names them, and when (epoch milliseconds). */
export interface Doing {
  by: string;
  at: number;
}
