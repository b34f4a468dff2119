import type { RankdError } from '../base/errors.ts';
import { crypto } from '../base/node-modules.ts';
import { withoutKeys } from './api-key.ts';
import {
  type AuditRow,
  type ChainLink,
  commitmentTo,
  forgetAction,
  linkHash,
  type PersonalField,
  pruneAction,
} from './audit.ts';
import type { AuditEvent, ErasureRequest, Hold, Key, KeyDeclaration, KeyRules, Plan, RankChange } from './model.ts';
import type { Webhook } from './webhooks/webhook.ts';

/**
 * An event before it is stored. A store saves it in the same transaction as the change that it records; the audit log
 * adds its number and hash. No `detail` ever holds a secret or its hash.
 */
export interface DomainEvent extends Omit<AuditEvent, 'id'> {
  /**
   * The fields of `detail` that name people on the platform, with their user ids. The chain holds a commitment instead
   * of each id, so that a person can be forgotten without breaking the chain.
   */
  people?: Readonly<Partial<Record<PersonalField, number>>>;
}

/** The actor recorded in the audit log, and the time (epoch milliseconds). */
export interface Actor {
  by: string;
  at: number;
}

/** A verdict on stored facts: a change for the store to save together with its events, or a refusal. */
export type Verdict<Change> = { change: Change; events: DomainEvent[] } | { refusal: RankdError };

/** All audit actions, by the part before the dot. */
const actions = {
  rank: ['pending', 'begin', 'applied', 'refused', 'failed', 'unknown', 'compensate', 'late_write', 'list'],
  suspension: ['begin', 'renew', 'extend', 'reopen', 'end', 'lift', 'supersede', 'forfeit', 'stuck'],
  history: ['undo_begin', 'undo', 'prune'],
  person: ['request', 'forget'],
  key: ['create', 'adopt', 'declare', 'rotate', 'set', 'revoke', 'pause', 'resume'],
  whitelist: ['add', 'enable', 'disable', 'remove'],
  workspace: ['suspend', 'resume', 'plan'],
  webhook: ['add', 'declare', 'set', 'rotate', 'enable', 'disable', 'remove', 'redeliver', 'skip'],
  credential: ['refuse', 'accept', 'expire_soon'],
  dashboard: ['link', 'login', 'logout', 'refuse'],
  discord: ['link', 'unlink'],
  caller: ['refused'],
  store: ['accept', 'lost'],
  audit: ['prune'],
  config: ['reload', 'refuse'],
  configuration: ['drift', 'fit'],
  database: ['backup', 'restore'],
} as const;

type Subject = keyof typeof actions;
type Action = { [S in Subject]: `${S}.${(typeof actions)[S][number]}` }[Subject];

export const auditActions: readonly string[] = Object.entries(actions).flatMap(([subject, happened]) =>
  happened.map((what) => `${subject}.${what}`),
);

function event(action: Action, subject: string, detail: Record<string, unknown>, { by, at }: Actor): DomainEvent {
  const masked = JSON.parse(
    JSON.stringify(detail, (_, value) => (typeof value === 'string' ? withoutKeys(value) : value)),
  );
  return { at, by: withoutKeys(by), action, subject: withoutKeys(subject), detail: masked };
}

// ---- rank changes ----

/**
 * Returns the event for a step in a rank change. `compensate`: rankd begins to restore the earlier roles. `at`: epoch
 * milliseconds.
 */
export function changeEvent(
  change: RankChange,
  step: RankChange['state'] | 'begin' | 'compensate' | 'late_write',
  at: number,
): DomainEvent {
  const { id, by, kind, rankeeId, code, rolesBefore, rolesAfter, keyId, placeId, undoId, dryRun, hold } = change;
  const holdId = hold?.id;
  const detail = { kind, code, rolesBefore, rolesAfter, keyId, placeId, undoId, holdId, ...(dryRun && { dryRun }) };
  return { ...event(`rank.${step}`, id, detail, { by, at }), people: { rankeeId } };
}

/** Returns the event for a step in a suspension or a temporary rank. */
export function suspensionEvent(
  what: 'begin' | 'renew' | 'extend' | 'reopen' | 'end' | 'lift' | 'supersede' | 'forfeit' | 'stuck',
  { id, kind, rankeeId, changeId, returnChangeId, endsAt, keyId, placeId, code }: Hold,
  actor: Actor,
): DomainEvent {
  const detail = { kind, changeId, returnChangeId, endsAt, keyId, placeId, code };
  return { ...event(`suspension.${what}`, id, detail, actor), people: { rankeeId } };
}

/**
 * Returns the event for a person's removal from changes and events; `mentionsHash` binds it to the emptied mentions.
 */
export function personForgotten(
  pseudonym: number,
  detail: { changes: number; events: number; mentions: number; mentionsHash: string },
  actor: Actor,
): DomainEvent {
  return event(forgetAction, String(pseudonym), detail, actor);
}

/**
 * Returns the event for a user's request to be forgotten, which the platform passed on. Does not name a user whom no
 * other record names.
 */
export function erasureRequested({ id, userId, doneAt }: ErasureRequest, actor: Actor): DomainEvent {
  const isKnown = doneAt === undefined;
  return { ...event('person.request', id, { isKnown }, actor), ...(isKnown && { people: { rankeeId: userId } }) };
}

/** Returns the event for the start or completion of a list of rank changes. */
export function rankList(
  listId: string,
  detail: { does: 'begin' | 'end'; content: string; members: number },
  actor: Actor,
): DomainEvent {
  return event('rank.list', listId, detail, actor);
}

/** Returns the event for the start of an undo run, or for its end with the result in `detail`. */
export function historyUndone(
  { undoId, does }: { undoId: string; does: 'begin' | 'end' },
  {
    rankeeId,
    rankerId,
    ...detail
  }: Record<string, unknown> & { rankeeId?: number | undefined; rankerId?: number | undefined },
  actor: Actor,
): DomainEvent {
  const people = { ...(rankeeId !== undefined && { rankeeId }), ...(rankerId !== undefined && { rankerId }) };
  return { ...event(does === 'begin' ? 'history.undo_begin' : 'history.undo', undoId, detail, actor), people };
}

// ---- keys ----

export function keyCreated(
  { id, name, mode, scopes, expiresAt, isSimulated }: Omit<Key, 'createdAt' | 'secrets'>,
  rules: KeyRules,
  actor: Actor,
): DomainEvent {
  const detail = { name, mode, scopes, ...rules, expiresAt, ...(isSimulated && { isSimulated }) };
  return event('key.create', id, detail, actor);
}

/** Returns the event for a key from the simulated group that became valid for the real one. */
export function keyAdopted(keyId: string, actor: Actor): DomainEvent {
  return event('key.adopt', keyId, {}, actor);
}

export function keyDeclared(
  keyId: string,
  { name, mode, scopes, rules, expiresAt, declaredIn }: KeyDeclaration,
  isNewSecret: boolean,
  actor: Actor,
): DomainEvent {
  const detail = { name, mode, scopes, ...rules, expiresAt, declaredIn, isNewSecret };
  return event('key.declare', keyId, detail, actor);
}

/** An event about a key also has the key's name, because operators know keys by name. */
type NamedKey = Pick<Key, 'id' | 'name'>;

export function keyRotated({ id, name }: NamedKey, oldExpiresAt: number, actor: Actor): DomainEvent {
  return event('key.rotate', id, { name, oldExpiresAt }, actor);
}

export function keyRulesSet(
  keyId: string,
  changed: Record<string, { from: unknown; to: unknown }>,
  actor: Actor,
): DomainEvent {
  return event('key.set', keyId, changed, actor);
}

export function keyRevoked({ id, name }: NamedKey, detail: { reason?: string }, actor: Actor): DomainEvent {
  return event('key.revoke', id, { name, ...detail }, actor);
}

export function keyPaused({ id, name }: NamedKey, reason: string, actor: Actor): DomainEvent {
  return event('key.pause', id, { name, reason }, actor);
}

export function keyResumed({ id, name }: NamedKey, reason: string, actor: Actor): DomainEvent {
  return event('key.resume', id, { name, reason }, actor);
}

// ---- the whitelist and the workspace ----

export function placeEvent(
  what: 'add' | 'enable' | 'disable' | 'remove',
  placeId: number,
  detail: { keyId: string; note?: string | undefined; added?: boolean; declaredIn?: string },
  actor: Actor,
): DomainEvent {
  return event(`whitelist.${what}`, String(placeId), detail, actor);
}

export function workspaceActivated(workspaceId: string, active: boolean, actor: Actor): DomainEvent {
  return event(active ? 'workspace.resume' : 'workspace.suspend', workspaceId, {}, actor);
}

export function planChanged(workspaceId: string, plans: { from: Plan; to: Plan }, actor: Actor): DomainEvent {
  return event('workspace.plan', workspaceId, plans, actor);
}

// ---- webhooks ----

/** Returns the event for a webhook change by an operator or the configuration. Omits the address and the secret. */
export function webhookEvent(
  what: 'add' | 'declare' | 'set' | 'rotate' | 'enable' | 'remove' | 'redeliver',
  { id, name }: Pick<Webhook, 'id' | 'name'>,
  detail: Record<string, unknown>,
  actor: Actor,
): DomainEvent {
  return event(`webhook.${what}`, id, { name, ...detail }, actor);
}

/** Returns the event for a webhook disabled by an operator, or by the daemon because its target is dead. */
export function webhookDisabled({ id, name }: Pick<Webhook, 'id' | 'name'>, why: string, actor: Actor): DomainEvent {
  return event('webhook.disable', id, { name, why }, actor);
}

/** Events that a webhook never receives: the first number, the last number, and the count. */
export interface Skipped {
  fromId: number;
  toId: number;
  count: number;
}

/** Returns the event for events that a webhook never receives: they are too old, or an operator skipped them. */
export function eventsSkipped({ id, name }: Pick<Webhook, 'id' | 'name'>, skipped: Skipped, actor: Actor): DomainEvent {
  return event('webhook.skip', id, { name, ...skipped }, actor);
}

// ---- the credential ----

/** Returns the event for a change in the state of rankd's credential, as the platform reports it. */
export function credentialEvent(
  what: 'refuse' | 'accept' | 'expire_soon',
  detail: { message?: string; expiresAt?: string },
  actor: Actor,
): DomainEvent {
  return event(`credential.${what}`, 'platform', detail, actor);
}

// ---- the dashboard ----

/** Returns a dashboard event. It contains no link, cookie or token. */
export function dashboardEvent(
  what: 'link' | 'login' | 'logout' | 'refuse',
  detail: Record<string, unknown>,
  actor: Actor,
): DomainEvent {
  return event(`dashboard.${what}`, 'dashboard', detail, actor);
}

// ---- Discord ----

/**
 * Returns the event for a Discord user who was linked to a Roblox user, or unlinked. `person` is the Discord user's
 * name in the history and the audit log.
 */
export function discordLinked(what: 'link' | 'unlink', person: string, userId: number, actor: Actor): DomainEvent {
  return { ...event(`discord.${what}`, person, {}, actor), people: { rankerId: userId } };
}

// ---- the daemon and its store ----

/** Returns the event for the callers refused with this code since the previous such event. */
export function callersRefused(code: string, detail: Record<string, unknown>, actor: Actor): DomainEvent {
  return event('caller.refused', code, detail, actor);
}

/**
 * Returns the event for committed events that the database server has lost, up to the last one that a node had seen.
 */
export function storeLost(range: { fromId: number; toId: number }, actor: Actor): DomainEvent {
  return event('store.lost', 'audit', range, actor);
}

/**
 * Returns the event for a different database server that the operator accepted. `known` and `found` identify clusters;
 * `known` is null if the data directory had recorded none.
 */
export function storeAccepted(
  place: string,
  detail: { known: string | null; found: string },
  actor: Actor,
): DomainEvent {
  return event('store.accept', place, detail, actor);
}

export function historyPruned({ removed, before }: { removed: number; before: number }, actor: Actor): DomainEvent {
  const detail = { removed, olderThan: new Date(before).toISOString() };
  return event('history.prune', 'retention', detail, actor);
}

/** Returns the event that announces the removal of the audit log's first rows, up to `upTo`, by retention. */
export function auditPruned(
  { removed, before, upTo }: { removed: number; before: number; upTo: ChainLink },
  actor: Actor,
): DomainEvent {
  const detail = { removed, olderThan: new Date(before).toISOString(), upToId: upTo.id, upToHash: upTo.hash };
  return event(pruneAction, 'retention', detail, actor);
}

export function configReloaded(
  file: string,
  names: { applied: string[]; needRestart: string[] },
  actor: Actor,
): DomainEvent {
  return event('config.reload', file, names, actor);
}

/** Returns the event for a configuration entry that does not identify its role. */
export function configurationDrifted(
  { setting, entry, message, fix }: { setting: string; entry: string; message: string; fix: string },
  actor: Actor,
): DomainEvent {
  return event('configuration.drift', setting, { entry, message, fix }, actor);
}

/** Returns the event for a configuration entry that identifies its role again, or was removed. */
export function configurationFits({ setting, entry }: { setting: string; entry: string }, actor: Actor): DomainEvent {
  return event('configuration.fit', setting, { entry }, actor);
}

export function configRefused(file: string, message: string, actor: Actor): DomainEvent {
  return event('config.refuse', file, { message }, actor);
}

/** The store finds the newest backup by this action. */
export const backupAction = 'database.backup';

export function databaseBackedUp(
  { file, bytes }: { file: string | undefined; bytes: number },
  actor: Actor,
): DomainEvent {
  return event(backupAction, file ?? 'standard output', { bytes }, actor);
}

export function databaseRestored(
  database: string,
  detail: { file: string; kept: string | null },
  actor: Actor,
): DomainEvent {
  return event('database.restore', database, detail, actor);
}

/** Returns the row for an event after `last`, with fresh salts for the people it names. */
export function rowAfter(last: ChainLink, { detail, people: named = {}, ...event }: DomainEvent): AuditRow {
  const people = Object.entries(named).map(([field, userId]) => ({ field, userId, salt: newSalt() }));
  const commitments = Object.fromEntries(people.map(({ field, ...person }) => [field, commitmentTo(person)]));
  const row = { ...event, id: last.id + 1, detail: JSON.stringify({ ...commitments, ...detail }) };
  return { ...row, people, hash: linkHash(last.hash, row) };
}

/** Returns the event in a row, including the people it names. */
export function eventOf({ hash: _, detail, people, ...event }: AuditRow): AuditEvent {
  return {
    ...event,
    detail: { ...JSON.parse(detail), ...Object.fromEntries(people.map(({ field, userId }) => [field, userId])) },
  };
}

/**
 * Returns a fresh salt of 122 random bits, in hex. Without it, a commitment could be opened by trying every user id.
 * `randomUUID` is fast, because Node.js generates the bits of many UUIDs at once.
 */
function newSalt(): string {
  return crypto().randomUUID().replaceAll('-', '');
}
