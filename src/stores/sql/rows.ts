import type { DiscordPerson } from '../../core/discord-person.ts';
import type { DomainEvent, Verdict } from '../../core/events.ts';
import type { KeyEdit } from '../../core/key-changes.ts';
import {
  type ErasureRequest,
  effectiveStates,
  type Hold,
  type KeyRules,
  openChangeStates,
  type RankChange,
} from '../../core/model.ts';
import type { Delivery, Webhook } from '../../core/webhooks/webhook.ts';
import type { Dialect } from './database.ts';

/** A row of a model type: an absent field is NULL, a list or an object is JSON, and a boolean can be 0 or 1. */
export type RowOf<Model> = {
  [Name in keyof Model]-?: undefined extends Model[Name]
    ? Column<NonNullable<Model[Name]>> | null
    : Column<Model[Name]>;
};

type Column<Value> = Value extends boolean ? boolean | number : Value extends object ? string : Value;

/** A row type without NULL: nullable columns are optional fields instead. */
export type Present<Row> = {
  [Name in keyof Row as null extends Row[Name] ? never : Name]: Row[Name];
} & {
  [Name in keyof Row as null extends Row[Name] ? Name : never]?: NonNullable<Row[Name]>;
};

export function withoutNulls<Row extends object>(row: Row): Present<Row> {
  const present: Record<string, unknown> = {};
  for (const name in row) if (row[name] !== null) present[name] = row[name];
  return present as Present<Row>;
}

export const changeColumns = {
  id: 'id',
  kind: 'kind',
  group: 'group_title',
  state: 'state',
  code: 'code',
  message: 'message',
  rankeeId: 'rankee_id',
  rankeeName: 'rankee_name',
  rankerId: 'ranker_id',
  rankerName: 'ranker_name',
  newRankId: 'new_rank_id',
  roleId: 'role_id',
  oldRoleId: 'old_role_id',
  rolesBefore: 'roles_before',
  rolesAfter: 'roles_after',
  roles: 'role_names',
  phase: 'phase',
  keyId: 'key_id',
  placeId: 'place_id',
  by: 'done_by',
  dryRun: 'dry_run',
  demotion: 'demotion',
  topRank: 'top_rank',
  privileged: 'privileged',
  command: 'command',
  oldRankName: 'old_rank_name',
  prefix: 'prefix',
  webhookHost: 'webhook_host',
  webhookHash: 'webhook_hash',
  reason: 'reason',
  requestedAt: 'requested_at',
  finishedAt: 'finished_at',
  undoOf: 'undo_of',
  undoId: 'undo_id',
  hold: 'hold',
  idempotencyKey: 'idempotency_key',
  fingerprint: 'fingerprint',
} as const satisfies Record<keyof RankChange, string>;

export const holdColumns = {
  id: 'id',
  group: 'group_title',
  kind: 'kind',
  state: 'state',
  rankeeId: 'rankee_id',
  rankeeName: 'rankee_name',
  rolesBefore: 'roles_before',
  rolesDuring: 'roles_during',
  changeId: 'change_id',
  returnChangeId: 'return_change_id',
  rankerId: 'ranker_id',
  rankerName: 'ranker_name',
  reason: 'reason',
  by: 'done_by',
  keyId: 'key_id',
  placeId: 'place_id',
  beginsAt: 'begins_at',
  endsAt: 'ends_at',
  endedAt: 'ended_at',
  awaySince: 'away_since',
  tries: 'tries',
  nextTryAt: 'next_try_at',
  code: 'code',
  message: 'message',
} as const satisfies Record<keyof Hold, string>;

export const erasureColumns = {
  id: 'id',
  userId: 'user_id',
  requestedAt: 'requested_at',
  receivedAt: 'received_at',
  doneAt: 'done_at',
} as const satisfies Record<keyof ErasureRequest, string>;

export const keyRuleColumns = {
  maxRank: 'max_rank',
  minRank: 'min_rank',
  maxRankRole: 'max_rank_role',
  minRankRole: 'min_rank_role',
  direction: 'direction',
  selfRank: 'self_rank',
  isSystem: 'is_system',
  isPrivileged: 'is_privileged',
  isAnyPlace: 'is_any_place',
  ratePerMinute: 'rate',
  isForDiscord: 'is_for_discord',
} as const satisfies Record<keyof KeyRules, string>;

export const editableKeyColumns = {
  revokedAt: 'revoked_at',
  pausedAt: 'paused_at',
  resumedAt: 'resumed_at',
  isSimulated: 'is_simulated',
} as const satisfies Record<Exclude<keyof KeyEdit, 'rules' | 'secret'>, string>;

export const webhookColumns = {
  id: 'id',
  name: 'name',
  kind: 'kind',
  shown: 'shown',
  address: 'address',
  addressHash: 'address_hash',
  secret: 'secret',
  oldSecret: 'old_secret',
  oldSecretUntil: 'old_secret_until',
  events: 'events',
  mention: 'mention',
  isForGames: 'is_for_games',
  state: 'state',
  why: 'why',
  cursor: 'cursor',
  alarmCursor: 'alarm_cursor',
  createdAt: 'created_at',
  declaredIn: 'declared_in',
  failingSince: 'failing_since',
  failedTries: 'failed_tries',
  lastOkAt: 'last_ok_at',
  lastError: 'last_error',
  heldUntil: 'held_until',
} as const satisfies Record<keyof Webhook, string>;

export const deliveryColumns = {
  webhookId: 'webhook_id',
  sequence: 'sequence',
  type: 'type',
  state: 'state',
  tries: 'tries',
  status: 'status',
  error: 'error',
  nextTryAt: 'next_try_at',
  firstAt: 'first_at',
  lastAt: 'last_at',
} as const satisfies Record<keyof Delivery, string>;

export const discordColumns = {
  discordId: 'discord_id',
  salt: 'salt',
  userId: 'user_id',
  linkedBy: 'linked_by',
  linkedAt: 'linked_at',
} as const satisfies Record<keyof DiscordPerson, string>;

/**
 * Builds SQL once per engine, because looking up a prepared statement is faster with the same string object than with
 * an equal one.
 */
export function perEngine(build: (sql: Dialect) => string): (sql: Dialect) => string {
  const built = new Map<Dialect, string>();
  return (sql) => {
    let text = built.get(sql);
    if (text === undefined) {
      text = build(sql);
      built.set(sql, text);
    }
    return text;
  };
}

/** Returns the part of an INSERT after the table name, with one parameter per field. */
export function inserted(columns: Record<string, string>): string {
  const values = Object.keys(columns).map((field) => `@${field}`);
  return `(${Object.values(columns).join(', ')}) VALUES (${values.join(', ')})`;
}

/** Like `inserted`, but replaces an existing row with the same key. */
export function upserted(columns: Record<string, string>, key: string): string {
  const replaced = Object.values(columns).map((column) => `${column} = excluded.${column}`);
  return `${inserted(columns)} ON CONFLICT (${key}) DO UPDATE SET ${replaced.join(', ')}`;
}

export function selected(columns: Record<string, string>): string {
  return Object.entries(columns)
    .map(([field, column]) => `${column} AS "${field}"`)
    .join(', ');
}

/** Joins the conditions for the filter's set fields with AND. Returns `TRUE` if no field is set. */
export function whereOf<Field extends string>(
  conditions: Readonly<Record<Field, string>>,
  filter: { readonly [Name in NoInfer<Field>]?: unknown },
): string {
  const asked = (Object.keys(conditions) as Field[]).filter((name) => filter[name] !== undefined);
  return asked.map((name) => conditions[name]).join(' AND ') || 'TRUE';
}

export function inStates(states: readonly string[]): string {
  return `state IN (${states.map((state) => `'${state}'`).join(', ')})`;
}

export const isOpenChange = inStates(openChangeStates);

/** Matches changes whose writes the platform may have accepted. */
export const mayHaveChanged = inStates(effectiveStates);

/** Matches rows by actor: `@by` is a full name, or the part before its colon. */
export const isDoneBy = "(done_by = @by OR substr(done_by, 1, length(@by) + 1) = @by || ':')";

/**
 * Returns the verdict's change and events. If the verdict is a refusal, throws it, which rolls back the transaction.
 */
export function allowed<Change>(verdict: Verdict<Change>): { change: Change; events: DomainEvent[] } {
  if ('refusal' in verdict) throw verdict.refusal;
  return verdict;
}
