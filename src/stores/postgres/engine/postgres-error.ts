import { type ConnectionCause, causeOf, connectionFailure } from '../../../base/connection-cause.ts';
import { codeOf, RankdError, type RankdErrorOptions } from '../../../base/errors.ts';
import { hostAndPort, placeOf, type ServerAddress } from '../../../base/net.ts';
import { sqlName } from '../../../base/text.ts';
import { connectionsPerDaemon } from '../../../core/nodes.ts';
import { unproven } from './client.ts';

/** The oldest major version of PostgreSQL that rankd supports. */
export const oldestServer = 15;

/**
 * Converts a PostgreSQL error (https://www.postgresql.org/docs/current/errcodes-appendix.html), a driver error or a
 * network error into a RankdError. Messages can reach a game's log, so only hints contain addresses, unless rankd can't
 * use the database at all.
 */
export function toStoreError(error: unknown, address: ServerAddress): RankdError {
  if (error instanceof RankdError) return error;
  const code = codeOf(error);
  const known =
    byCode[code] ??
    byCode[code.slice(0, 2)] ??
    byMessage(error) ??
    (isNetwork(code) || causeOf(error) !== undefined ? unreachable : mistake);
  return known(address, error);
}

type Wording = (address: ServerAddress, cause: unknown) => RankdError;

/**
 * True if the connection broke or a timeout expired, in which case the server may have executed the statement. The
 * driver's own errors have no code. A RangeError or TypeError means that a value was invalid.
 */
export function isLost(error: unknown): boolean {
  if (error instanceof RangeError || error instanceof TypeError) return false;
  const code = codeOf(error);
  return isNetwork(code) || code.startsWith('ERR_SSL_') || lostCodes.has(code);
}

const lostCodes = new Set(['', '57P01', '57P02', '57P03', '57P05', '08006', '08003', '25P03', '25P04']);

/**
 * True if the transaction can be retried, because the server rolled it back after a serialization failure, a deadlock
 * or a canceled statement. A user's `statement_timeout` can cancel BEGIN on a busy server, before rankd overrides it.
 */
export function isRetryable(error: unknown): boolean {
  return ['40001', '40P01', '57014'].includes(codeOf(error));
}

const byCode: Record<string, Wording> = {
  '08P01': fromPooler,
  '23505': (_, cause) => new RankdError('conflict', 'The new record conflicts with an existing one.', { cause }),
  '23': (_, cause) =>
    new RankdError('internal', 'The database rejected a record that violates its constraints.', { cause }),
  '28P01': wrongPassword,
  '28': loginRejected,
  '3D000': noDatabase,
  '42501': ({ user, database }, cause) =>
    new RankdError('no_permission', `The user ${user} lacks a privilege in rankd's database: ${messageOf(cause)}.`, {
      hint: messageOf(cause).includes('for database')
        ? `allow it to create rankd's schema: GRANT CREATE ON DATABASE ${sqlName(database)} TO ${sqlName(user)}`
        : `set the user in store.url to the owner of the rankd schema, or make ${user} a member of that role`,
      cause,
    }),
  '25006': (address, cause) => standby(address, cause),
  '26000': (_, cause) => pooler(cause),
  '42P05': (_, cause) => pooler(cause),
  '42P01': damaged,
  '42703': damaged,
  '53100': (_, cause) =>
    unavailable("The PostgreSQL server's disk is full, so nothing was changed.", {
      hint: 'free up disk space on the server',
      cause,
    }),
  '53300': noConnection,
  '55P03': (_, cause) => busy(cause),
  '57014': (_, cause) => busy(cause),
  '40': (_, cause) =>
    unavailable('The transaction kept conflicting with others on the PostgreSQL server, so nothing was changed.', {
      hint: 'try again; if the error persists, check in pg_stat_activity which other clients write to the rankd schema',
      cause,
    }),
  '57': (_, cause) =>
    unavailable('The PostgreSQL server is starting or stopping.', { hint: 'wait until the server is up', cause }),
};

function byMessage(error: unknown): Wording | undefined {
  const message = messageOf(error);
  if (message.includes('does not support SSL')) return noTls;
  if (message === 'timeout expired') return unreachable; // while connecting
  if (message.includes('client password must be')) return noPassword;
  if (/^SASL: SCRAM-SERVER-(FINAL|FIRST)-MESSAGE: server (signature|nonce)/.test(message)) return unproven;
  if (/^SASL: |^Unknown authentication/.test(message)) return loginRejected; // unsupported method, or an impostor
  if (message.includes('establishing an SSL connection')) return unreachable; // another program is listening there
  if (message.includes('timeout')) return (_, cause) => busy(cause);
  return /terminated|not queryable|was closed/.test(message) ? unreachable : undefined;
}

function isNetwork(code: string): boolean {
  return /^E[A-Z_]+$/.test(code) && !code.startsWith('ERR_');
}

function unreachable(address: ServerAddress, error: unknown): RankdError {
  const failure = connectionFailure(error, { at: hostAndPort(address) });
  const { cause: connection, words } = failure;
  const message = `The PostgreSQL server can't be reached: ${words}.`;
  const place = hostAndPort(address);
  const usualHint = `check that it is running and that ${place} is right (${messageOf(error)})`;
  const hint = connection === 'failed' ? usualHint : (hints[connection] ?? failure.hint);
  return misconfigured.has(connection)
    ? new RankdError('config_invalid', message, { hint, connection, cause: error })
    : unavailable(message, { hint, connection, cause: error });
}

const misconfigured: ReadonlySet<ConnectionCause> = new Set([
  'certificate_untrusted',
  'certificate_expired',
  'certificate_not_yet_valid',
  'certificate_for_another_name',
  'tls_failed',
]);

const hints: Partial<Record<ConnectionCause, string>> = {
  certificate_untrusted: "set store.ca_file to the certificate of the server's CA",
  certificate_for_another_name: 'in store.url, use the host name that the certificate names',
  tls_failed: 'check ssl_min_protocol_version, ssl_max_protocol_version and ssl_ciphers in postgresql.conf',
};

export function standby(address: ServerAddress, cause?: unknown): RankdError {
  return unavailable('The PostgreSQL server is read-only: it is a standby, or was configured as read-only.', {
    hint: `point store.url at the primary: ${hostAndPort(address)} is not the primary`,
    cause,
  });
}

/** Returns the error for a read-only database or server. `source` comes from `pg_settings`. */
export function databaseReadOnly(address: ServerAddress, source: string): RankdError {
  const { database } = address;
  const isOfDatabase = source === 'database';
  const scope = isOfDatabase ? 'database' : 'server';
  const lift = isOfDatabase
    ? `SET default_transaction_read_only = off; ALTER DATABASE ${sqlName(database)} RESET default_transaction_read_only;`
    : 'ALTER SYSTEM SET default_transaction_read_only = off; SELECT pg_reload_conf();'; // also overrides postgresql.conf
  return unavailable(
    `The PostgreSQL ${scope} is read-only: default_transaction_read_only is on for the whole ${scope}.`,
    { hint: `to allow writes again, run in psql as a superuser: ${lift}` },
  );
}

/**
 * Returns the error for a session in which PostgreSQL skips some triggers or, with `replica`, all triggers and foreign
 * keys.
 */
export function triggersDisabled({ user }: ServerAddress): RankdError {
  const message = `PostgreSQL skips triggers or foreign keys for ${user}: session_replication_role is not origin.`;
  return new RankdError('config_invalid', message, {
    hint: `as a superuser, run \`ALTER ROLE ${sqlName(user)} RESET session_replication_role\`, and check that no database sets it`,
  });
}

export function otherEncoding({ database, user }: ServerAddress, encoding: string): RankdError {
  return new RankdError('config_invalid', `PostgreSQL's database ${database} uses ${encoding}; rankd needs UTF8.`, {
    hint: `create a UTF8 database with \`createdb --template=template0 --encoding=UTF8 --owner ${user} NAME\`, and name it in store.url`,
  });
}

export function superseded(address: ServerAddress): RankdError {
  return unavailable('The PostgreSQL server is no longer the primary: a standby has replaced it.', {
    hint: `point store.url at the current primary, and stop the server on ${hostAndPort(address)}`,
  });
}

export function tooOld(address: ServerAddress, version: string): RankdError {
  return new RankdError(
    'config_invalid',
    `The PostgreSQL server on ${hostAndPort(address)} is version ${version}; rankd needs ${oldestServer} or newer.`,
    { hint: 'upgrade the server, or point store.url at a newer one' },
  );
}

function damaged(_: ServerAddress, cause: unknown): RankdError {
  const hint = 'run rankd db check, then restore the missing parts from a server backup';
  return new RankdError('store_unavailable', "Part of rankd's schema is missing from the database.", { hint, cause });
}

function pooler(cause: unknown): RankdError {
  const message = 'A pooler between rankd and PostgreSQL loses prepared statements.';
  return new RankdError('config_invalid', message, {
    hint: 'connect to the server itself, or use PgBouncer 1.21 or newer with max_prepared_statements above 0',
    cause,
  });
}

/** Converts a PgBouncer error. PgBouncer uses the same code for all of its errors. */
function fromPooler(address: ServerAddress, cause: unknown): RankdError {
  const message = messageOf(cause);
  if (message.includes('statement pooling'))
    return new RankdError('config_invalid', 'The pooler between rankd and PostgreSQL allows no transactions.', {
      hint: 'connect to the server itself, or set pool_mode = transaction in PgBouncer',
      cause,
    });
  if (/authentication failed|empty password/.test(message)) return wrongPassword(address, cause);
  if (/no such user|role .* does not exist/.test(message)) return loginRejected(address, cause);
  if (/no such database|database .* does not exist/.test(message)) return noDatabase(address, cause);
  if (message.includes('no more connections')) return noConnection(address, cause);
  return unreachable(address, cause);
}

function wrongPassword(address: ServerAddress, cause: unknown): RankdError {
  return new RankdError(
    'no_permission',
    `PostgreSQL refused the password of ${address.user} for ${placeOf(address)}.`,
    {
      hint: 'check RANKD_STORE_PASSWORD, or the file that store.password_file names',
      cause,
    },
  );
}

function noPassword({ user, ...address }: ServerAddress, cause: unknown): RankdError {
  const message = `PostgreSQL requires a password from ${user} for ${placeOf({ user, ...address })}, but none is configured.`;
  return new RankdError('no_permission', message, {
    hint: 'set RANKD_STORE_PASSWORD, or name a file with the password in store.password_file',
    cause,
  });
}

function loginRejected(address: ServerAddress, cause: unknown): RankdError {
  const message = `PostgreSQL does not accept ${address.user} on ${placeOf(address)}: ${messageOf(cause)}.`;
  return new RankdError('no_permission', message, {
    hint: "check the user in store.url and the server's pg_hba.conf",
    cause,
  });
}

function noDatabase(address: ServerAddress, cause: unknown): RankdError {
  const { database, user } = address;
  const message = `The PostgreSQL server on ${hostAndPort(address)} has no database named ${database}.`;
  return new RankdError('config_invalid', message, { hint: `create it: createdb --owner ${user} ${database}`, cause });
}

function noConnection(_: ServerAddress, cause: unknown): RankdError {
  return unavailable('The PostgreSQL server has no connection left for rankd.', {
    hint: `raise the server's max_connections (each daemon needs ${connectionsPerDaemon}), or check which clients are connected`,
    cause,
  });
}

function noTls(address: ServerAddress, cause: unknown): RankdError {
  return new RankdError('config_invalid', `The PostgreSQL server on ${hostAndPort(address)} offers no TLS.`, {
    hint: 'set ssl = on in postgresql.conf; or, on a private network, set store.tls: off',
    cause,
  });
}

export function busy(cause: unknown): RankdError {
  return unavailable('The PostgreSQL server took too long, so nothing was changed.', {
    hint: 'try again; if the error persists, check pg_stat_activity on the server',
    cause,
  });
}

function unavailable(message: string, options: RankdErrorOptions): RankdError {
  return new RankdError('store_unavailable', message, { retryAfterMs: 1_000, ...options });
}

function mistake(_: ServerAddress, cause: unknown): RankdError {
  return new RankdError('internal', 'A database operation failed because of a bug in rankd.', { cause });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.replace(/\.$/, '') : String(error);
}
