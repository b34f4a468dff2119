import type pg from 'pg';
import { codeOf } from '../../../base/errors.ts';
import type { ServerAddress } from '../../../base/net.ts';
import { unreported } from '../known-cluster.ts';
import { serverTime } from '../server-clock.ts';
import {
  databaseReadOnly,
  oldestServer,
  otherEncoding,
  standby,
  superseded,
  tooOld,
  triggersDisabled,
} from './postgres-error.ts';

export interface Inspection {
  /** The cluster's `system_identifier`, or `unreported`. */
  cluster: string;
  /** The server's time, in epoch milliseconds. */
  time: number;
  /** SQL that begins a transaction for writing, with the settings that rankd requires. */
  begin: string;
  /** SQL that begins a read-only transaction on a single snapshot, with the same settings. */
  beginReading: string;
  /** The names of the settings that `begin` and `beginReading` override. */
  overridden: string[];
  /** True if the server's settings also suit statements outside a transaction. */
  suitsPlainStatements: boolean;
}

export async function inspectServer(client: pg.Client, address: ServerAddress): Promise<Inspection> {
  const [facts, identity] = await Promise.all([ask<Facts>(client, factsSql), readIdentity(client)]);
  const { version, versionName, encoding, isStandby, time, settings } = facts;
  if (version < oldestServer * 10_000) throw tooOld(address, versionName);
  if (encoding !== 'UTF8') throw otherEncoding(address, encoding);
  if (isStandby) throw standby(address);
  const readOnly = settings['default_transaction_read_only'];
  if (readOnly?.value === 'on' && !overridableSources.has(readOnly.source))
    throw databaseReadOnly(address, readOnly.source);
  if (settings['session_replication_role']?.value !== 'origin') throw triggersDisabled(address);
  if (identity.cluster !== unreported && isSuperseded(identity)) throw superseded(address);
  return { ...identity, time, ...transactionsUnder(settings) };
}

interface Facts {
  version: number;
  versionName: string;
  encoding: string;
  isStandby: boolean;
  time: number;
  settings: Settings;
}

/** A session's initial settings, keyed by name. */
type Settings = Record<string, { value: string; source: string }>;

/**
 * rankd overrides a read-only default only if it comes from one of these sources. It assumes that a default for the
 * whole database or server is deliberate.
 */
const overridableSources = new Set(['user', 'database user']);

/** Maps each setting's current value to the value that rankd requires. */
const needed: Record<string, (value: string) => string> = {
  statement_timeout: () => '0',
  lock_timeout: () => '0',
  transaction_timeout: () => '0',
  standard_conforming_strings: () => 'on',
  synchronous_commit: (value) => (['off', 'local'].includes(value) ? 'on' : value),
  search_path: (value) => (value.includes('pg_catalog') ? 'pg_catalog' : value), // pg_catalog is first if unlisted
};

function transactionsUnder(settings: Settings): Omit<Inspection, 'cluster' | 'time'> {
  const values = Object.entries(settings).map(([name, { value }]) => ({
    name,
    value,
    need: needed[name]?.(value) ?? value,
  }));
  const wrong = values.filter(({ value, need }) => value !== need);
  const local = wrong.map(({ name, need }) => `SET LOCAL ${name} = ${need}`);
  const isReadOnly = settings['default_transaction_read_only']?.value === 'on';
  const isolation = settings['default_transaction_isolation']?.value;
  const overridden = [
    ...(isolation === 'read committed' ? [] : ['default_transaction_isolation']),
    ...(isReadOnly ? ['default_transaction_read_only'] : []),
    ...wrong.map(({ name }) => name),
  ];
  const begin = (mode: string) => [`BEGIN ISOLATION LEVEL ${mode}`, ...ownSettings, ...local].join('; ');
  return {
    begin: begin(isReadOnly ? 'READ COMMITTED READ WRITE' : 'READ COMMITTED'),
    beginReading: begin('REPEATABLE READ READ ONLY'),
    overridden,
    suitsPlainStatements: overridden.every((name) => name === 'synchronous_commit'), // writes without `begin` need not be durable
  };
}

/**
 * The timeout limits how long a process that was suspended in the middle of a transaction can block others. A generic
 * plan suits all values, because statements find rows by key.
 */
const ownSettings = [
  'SET LOCAL idle_in_transaction_session_timeout = 3000',
  'SET LOCAL plan_cache_mode = force_generic_plan',
];

/** Runs a query, overriding settings that could break it, and resolves with its first row. */
async function ask<Row extends object>(client: pg.Client, sql: string): Promise<Row> {
  const results: unknown = await client.query(
    `SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL search_path = pg_catalog; ${sql}`,
  );
  const [row] = (results as pg.QueryResult<Row>[]).at(-1)?.rows ?? [];
  if (row === undefined) throw new TypeError('the server returned no row');
  return row;
}

const settingNames = [
  ...Object.keys(needed),
  ...['default_transaction_isolation', 'default_transaction_read_only', 'session_replication_role'],
];

const factsSql = `
  SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS "versionName",
         current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS "isStandby", ${serverTime} AS time,
         (SELECT json_object_agg(name, json_build_object('value', reset_val, 'source', source)) FROM pg_settings
          WHERE name IN (${settingNames.map((name) => `'${name}'`).join(', ')})) AS settings`;

/**
 * Resolves with the cluster and its timeline, which increases when a standby is promoted. The cluster is `unreported`
 * if the server does not report it to this user.
 */
async function readIdentity(client: pg.Client): Promise<{ cluster: string; timeline: number }> {
  try {
    return await ask(client, identitySql);
  } catch (error) {
    if (!identityUnavailable.has(codeOf(error))) throw error;
    return { cluster: unreported, timeline: 0 };
  }
}

/** Codes: insufficient_privilege, undefined_function, feature_not_supported, object_not_in_prerequisite_state. */
const identityUnavailable = new Set(['42501', '42883', '0A000', '55000']);

/**
 * Reads a primary's timeline from its WAL file name, because the control file shows a promotion only after a
 * checkpoint.
 */
const identitySql = `
  SELECT (SELECT system_identifier::text FROM pg_control_system()) AS cluster,
         CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())
         ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END AS timeline`;

/** The highest timeline that this process has seen, keyed by cluster. */
const seen = new Map<string, number>();

/**
 * Returns true if this process has already seen a newer primary of the cluster, which means that this server was
 * replaced. Otherwise, records the server's timeline.
 */
export function isSuperseded({ cluster, timeline }: { cluster: string; timeline: number }): boolean {
  const highest = seen.get(cluster) ?? 0;
  if (timeline < highest) return true;
  seen.set(cluster, timeline);
  return false;
}
