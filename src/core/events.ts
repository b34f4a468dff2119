import { type ChainLink, type PersonalField, pruneAction } from './audit.ts';
import type { AuditEvent, Key, KeyDeclaration, KeyRules, Plan, RankChange } from './model.ts';

/**
 * What happened, as a value. A store keeps an event in the transaction of what it tells of; the audit numbers and chains them.
 * No `detail` ever holds a secret or its hash.
 */
export interface DomainEvent extends Omit<AuditEvent, 'id'> {
  /**
   * Fields of `detail` that name people on the platform, by their user ids. The chain holds a commitment in the place of each, so that a
   * person can be forgotten and the chain still be verified.
   */
  people?: Readonly<Partial<Record<PersonalField, number>>>;
}

/** Who does it, as the audit names them, and when (epoch milliseconds). */
export interface Doing {
  by: string;
  at: number;
}

// ---- rank changes ----

/** A step in the life of a rank change, at that time (epoch milliseconds). */
export function changeEvent(
  change: RankChange,
  step: RankChange['state'] | 'begin' | 'roll_back',
  at: number,
): DomainEvent {
  const { id, by, rankeeId, code, rolesBefore, rolesAfter, keyId, placeId, undoId, dryRun } = change;
  const detail = { code, rolesBefore, rolesAfter, keyId, placeId, undoId, ...(dryRun && { dryRun }) };
  return { at, by, action: `rank.${step}`, subject: id, detail, people: { rankeeId } };
}

/** A person was taken out of history and audit; `mentions`: out of how many changes and events. */
export function personForgotten(
  pseudonym: number,
  mentions: { changes: number; events: number },
  doing: Doing,
): DomainEvent {
  return { ...doing, action: 'person.forget', subject: String(pseudonym), detail: mentions };
}

/** A run of `rankd history undo`. */
export function historyUndone(
  undoId: string,
  {
    rankeeId,
    rankerId,
    ...detail
  }: Record<string, unknown> & { rankeeId?: number | undefined; rankerId?: number | undefined },
  doing: Doing,
): DomainEvent {
  const people = { ...(rankeeId !== undefined && { rankeeId }), ...(rankerId !== undefined && { rankerId }) };
  return { ...doing, action: 'history.undo', subject: undoId, detail, people };
}

// ---- keys ----

export function keyCreated(
  { id, name, mode, scopes, expiresAt }: Pick<Key, 'id' | 'name' | 'mode' | 'scopes' | 'expiresAt'>,
  rules: KeyRules,
  doing: Doing,
): DomainEvent {
  return { ...doing, action: 'key.create', subject: id, detail: { name, mode, scopes, ...rules, expiresAt } };
}

export function keyDeclared(
  keyId: string,
  { name, mode, scopes, rules, expiresAt, declaredIn }: KeyDeclaration,
  isNewSecret: boolean,
  doing: Doing,
): DomainEvent {
  const detail = { name, mode, scopes, ...rules, expiresAt, declaredIn, isNewSecret };
  return { ...doing, action: 'key.declare', subject: keyId, detail };
}

export function keyRotated(keyId: string, oldExpiresAt: number, doing: Doing): DomainEvent {
  return { ...doing, action: 'key.rotate', subject: keyId, detail: { oldExpiresAt } };
}

export function keyRulesSet(
  keyId: string,
  changed: Record<string, { from: unknown; to: unknown }>,
  doing: Doing,
): DomainEvent {
  return { ...doing, action: 'key.set', subject: keyId, detail: changed };
}

export function keyRevoked(keyId: string, detail: { reason?: string }, doing: Doing): DomainEvent {
  return { ...doing, action: 'key.revoke', subject: keyId, detail };
}

/** The circuit breaker, or an operator, pauses a key. */
export function keyPaused(keyId: string, reason: string, doing: Doing): DomainEvent {
  return { ...doing, action: 'key.pause', subject: keyId, detail: { reason } };
}

export function keyResumed(keyId: string, reason: string, doing: Doing): DomainEvent {
  return { ...doing, action: 'key.resume', subject: keyId, detail: { reason } };
}

// ---- the whitelist and the workspace ----

export function placeEvent(
  what: 'add' | 'enable' | 'disable' | 'remove',
  placeId: number,
  detail: { keyId: string; note?: string | undefined; added?: boolean; declaredIn?: string },
  doing: Doing,
): DomainEvent {
  return { ...doing, action: `whitelist.${what}`, subject: String(placeId), detail };
}

export function workspaceActivated(workspaceId: string, active: boolean, doing: Doing): DomainEvent {
  return { ...doing, action: active ? 'workspace.resume' : 'workspace.suspend', subject: workspaceId, detail: {} };
}

export function planChanged(workspaceId: string, plans: { from: Plan; to: Plan }, doing: Doing): DomainEvent {
  return { ...doing, action: 'workspace.plan', subject: workspaceId, detail: plans };
}

// ---- the daemon and its store ----

/** Callers were refused so often, with this code, since the last event of the kind. */
export function callersRefused(code: string, detail: Record<string, unknown>, doing: Doing): DomainEvent {
  return { ...doing, action: 'caller.refused', subject: code, detail };
}

export function historyPruned({ removed, before }: { removed: number; before: number }, doing: Doing): DomainEvent {
  const detail = { removed, olderThan: new Date(before).toISOString() };
  return { ...doing, action: 'history.prune', subject: 'retention', detail };
}

/** Retention is to remove the audit's beginning, up to this row. */
export function auditPruned(
  { removed, before, upTo }: { removed: number; before: number; upTo: ChainLink },
  doing: Doing,
): DomainEvent {
  const detail = { removed, olderThan: new Date(before).toISOString(), upToId: upTo.id, upToHash: upTo.hash };
  return { ...doing, action: pruneAction, subject: 'retention', detail };
}

export function configReloaded(
  file: string,
  names: { applied: string[]; needRestart: string[] },
  doing: Doing,
): DomainEvent {
  return { ...doing, action: 'config.reload', subject: file, detail: names };
}

export function configRefused(file: string, message: string, doing: Doing): DomainEvent {
  return { ...doing, action: 'config.refuse', subject: file, detail: { message } };
}

export function databaseRestored(
  database: string,
  detail: { file: string; kept: string | null },
  doing: Doing,
): DomainEvent {
  return { ...doing, action: 'database.restore', subject: database, detail };
}
