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
 * An audit event that is not yet stored. The store saves it in the same transaction as the change that it records, and
 * adds its number and hash. `detail` never contains a secret or the hash of one.
 */
export interface DomainEvent extends Omit<AuditEvent, 'id'> {
  /**
   * The user ids of the people that the event names, keyed by field of `detail`. The chain stores a commitment in place
   * of each id, so that rankd can forget a person without breaking the chain.
   */
  people?: Readonly<Partial<Record<PersonalField, number>>>;
}

/** The actor and the time (epoch milliseconds) to record in the audit log. */
export interface Actor {
  by: string;
  at: number;
}

/** A change that the store saves together with its events, or a refusal. */
export type Verdict<Change> = { change: Change; events: DomainEvent[] } | { refusal: RankdError };

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
 * Returns the event for a step of a rank change. `compensate`: rankd begins to restore the previous roles. `at`: epoch
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

/** Returns the event for a step of a suspension, or of a temporary rank or role. */
export function suspensionEvent(
  what: 'begin' | 'renew' | 'extend' | 'reopen' | 'end' | 'lift' | 'supersede' | 'forfeit' | 'stuck',
  { id, kind, rankeeId, changeId, returnChangeId, endsAt, keyId, placeId, code }: Hold,
  actor: Actor,
): DomainEvent {
  const detail = { kind, changeId, returnChangeId, endsAt, keyId, placeId, code };
  return { ...event(`suspension.${what}`, id, detail, actor), people: { rankeeId } };
}

/** Returns the event for a person who was forgotten. `mentionsHash` binds it to the mentions that were emptied. */
export function personForgotten(
  pseudonym: number,
  detail: { changes: number; events: number; mentions: number; mentionsHash: string },
  actor: Actor,
): DomainEvent {
  return event(forgetAction, String(pseudonym), detail, actor);
}

/**
 * Returns the event for a user's request to be forgotten, which the platform passed on. Names the user only if other
 * records do.
 */
export function erasureRequested({ id, userId, doneAt }: ErasureRequest, actor: Actor): DomainEvent {
  const isKnown = doneAt === undefined;
  return { ...event('person.request', id, { isKnown }, actor), ...(isKnown && { people: { rankeeId: userId } }) };
}

export function rankList(
  listId: string,
  detail: { does: 'begin' | 'end'; content: string; members: number },
  actor: Actor,
): DomainEvent {
  return event('rank.list', listId, detail, actor);
}

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

/** For events that include the key's name, because operators know keys by name. */
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

/**
 * Returns the event for a change to a webhook by an operator or the configuration. `detail` must not contain the
 * address or the secret.
 */
export function webhookEvent(
  what: 'add' | 'declare' | 'set' | 'rotate' | 'enable' | 'remove' | 'redeliver',
  { id, name }: Pick<Webhook, 'id' | 'name'>,
  detail: Record<string, unknown>,
  actor: Actor,
): DomainEvent {
  return event(`webhook.${what}`, id, { name, ...detail }, actor);
}

export function webhookDisabled({ id, name }: Pick<Webhook, 'id' | 'name'>, why: string, actor: Actor): DomainEvent {
  return event('webhook.disable', id, { name, why }, actor);
}

/** A range of events that a webhook never receives. */
export interface Skipped {
  fromId: number;
  toId: number;
  count: number;
}

/** Returns the event for events that a webhook never receives, because they are too old or an operator skipped them. */
export function eventsSkipped({ id, name }: Pick<Webhook, 'id' | 'name'>, skipped: Skipped, actor: Actor): DomainEvent {
  return event('webhook.skip', id, { name, ...skipped }, actor);
}

// ---- the credential ----

export function credentialEvent(
  what: 'refuse' | 'accept' | 'expire_soon',
  detail: { message?: string; expiresAt?: string },
  actor: Actor,
): DomainEvent {
  return event(`credential.${what}`, 'platform', detail, actor);
}

// ---- the dashboard ----

/** Returns a dashboard event. `detail` must not contain a link, cookie or token. */
export function dashboardEvent(
  what: 'link' | 'login' | 'logout' | 'refuse',
  detail: Record<string, unknown>,
  actor: Actor,
): DomainEvent {
  return event(`dashboard.${what}`, 'dashboard', detail, actor);
}

// ---- Discord ----

/** Returns the event for linking or unlinking a Discord user. `person`: the user's name from `actorOf`. */
export function discordLinked(what: 'link' | 'unlink', person: string, userId: number, actor: Actor): DomainEvent {
  return { ...event(`discord.${what}`, person, {}, actor), people: { rankerId: userId } };
}

// ---- the daemon and its store ----

/** Returns the event that summarizes the callers refused with this code since the previous event of this kind. */
export function callersRefused(code: string, detail: Record<string, unknown>, actor: Actor): DomainEvent {
  return event('caller.refused', code, detail, actor);
}

/**
 * Returns the event for committed events that the database server has lost, up to the last one that the recording node
 * had seen.
 */
export function storeLost(range: { fromId: number; toId: number }, actor: Actor): DomainEvent {
  return event('store.lost', 'audit', range, actor);
}

/**
 * Returns the event for a database server that the operator accepted in place of the known one. `known` and `found` are
 * cluster identifiers; `known` is null if the data directory had recorded none.
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

/** Returns the event that announces that retention will remove the audit log's rows up to `upTo`. */
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

/** The store uses this action to find the newest backup. */
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

/** Returns the row that follows `last`, with a fresh salt for each person that the event names. */
export function rowAfter(last: ChainLink, { detail, people: named = {}, ...event }: DomainEvent): AuditRow {
  const people = Object.entries(named).map(([field, userId]) => ({ field, userId, salt: newSalt() }));
  const commitments = Object.fromEntries(people.map(({ field, ...person }) => [field, commitmentTo(person)]));
  const row = { ...event, id: last.id + 1, detail: JSON.stringify({ ...commitments, ...detail }) };
  return { ...row, people, hash: linkHash(last.hash, row) };
}

/** Returns a row's event, with user ids in place of the commitments. */
export function eventOf({ hash: _, detail, people, ...event }: AuditRow): AuditEvent {
  return {
    ...event,
    detail: { ...JSON.parse(detail), ...Object.fromEntries(people.map(({ field, userId }) => [field, userId])) },
  };
}

/**
 * Returns a fresh salt of 122 random bits, in hex. Without a salt, anyone could open a commitment by trying every user
 * id. `randomUUID` is fast, because Node.js generates the bits of many UUIDs at once.
 */
function newSalt(): string {
  return crypto().randomUUID().replaceAll('-', '');
}
