import type { DiscordPerson } from '../core/discord-person.ts';
import type { KeyEdit } from '../core/key-changes.ts';
import type { Hold, KeyRules, RankChange } from '../core/model.ts';
import type { Delivery, Webhook } from '../core/webhooks/webhook.ts';

/** The column of every field, in every engine. */

export const changeColumns = {
  id: 'id',
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

/** Parts of statements: every value is a parameter of the name of its field. */
export function insertInto(table: string, columns: Record<string, string>): string {
  const values = Object.keys(columns).map((field) => `@${field}`);
  return `INSERT INTO ${table} (${Object.values(columns).join(', ')}) VALUES (${values.join(', ')})`;
}

/** Puts the row in the place of the one with the same key, if there is one. */
export function upsertInto(table: string, columns: Record<string, string>, key: string): string {
  const replaced = Object.values(columns).map((column) => `${column} = excluded.${column}`);
  return `${insertInto(table, columns)} ON CONFLICT (${key}) DO UPDATE SET ${replaced.join(', ')}`;
}

export function selected(columns: Record<string, string>): string {
  return Object.entries(columns)
    .map(([field, column]) => `${column} AS "${field}"`)
    .join(', ');
}

/** No value for any field. */
export function absent<Field extends string>(columns: Record<Field, string>): Record<Field, null> {
  return Object.fromEntries(Object.keys(columns).map((field) => [field, null])) as Record<Field, null>;
}
