import { sqlName } from '../../base/text.ts';
import {
  connectionsPerDaemon,
  differencesOf,
  maxSkewMs,
  type SeenNode,
  skewedClocks,
  skewText,
} from '../../core/nodes.ts';
import type { ServerFacts } from '../../ports/index.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/**
 * Checks the settings and state that the database server reported. Does not check for an old version or a standby:
 * rankd refuses to connect to those.
 */
export function serverFindings(facts: ServerFacts | undefined): Finding[] {
  if (facts === undefined) return [];
  const found = [
    ...[...durability(facts), ...settings(facts), ...standbys(facts), ...proof(facts)],
    ...[...connection(facts), ...rights(facts), ...skew(facts)],
  ];
  const way = facts.isEncrypted ? 'over TLS' : 'on this machine, without TLS';
  const isFine = found.every(({ grade }) => grade === 'ok');
  return [...(isFine ? [ok('server', `PostgreSQL ${facts.version}, ${way}`)] : []), ...found];
}

function durability({ isSynced, writesFullPages, isCommitSynced }: ServerFacts): Finding[] {
  const set = (name: string) => `as a superuser: ALTER SYSTEM SET ${name} = on; SELECT pg_reload_conf()`;
  return [
    ...(isSynced
      ? []
      : [fail('server', 'fsync is off: a crash of its machine can destroy the database', set('fsync'))]),
    ...(writesFullPages
      ? []
      : [fail('server', 'full_page_writes is off: a crash of its machine can corrupt pages', set('full_page_writes'))]),
    ...(isCommitSynced
      ? []
      : [ok('server', 'synchronous_commit is off; rankd turns it on for data that it must not lose')]),
  ];
}

function settings({ overridden, idleSessionTimeoutMs, user }: ServerFacts): Finding[] {
  const others = overridden.filter((name) => name !== 'synchronous_commit'); // `durability` reports it
  const what = others.length === 1 ? 'it' : 'them';
  return [
    ...(others.length === 0
      ? []
      : [
          ok(
            'server',
            `the role or database of ${user} sets ${others.join(', ')}; rankd overrides ${what} in each transaction`,
          ),
        ]),
    ...(idleSessionTimeoutMs === 0
      ? []
      : [
          warn(
            'server',
            `idle_session_timeout closes rankd's connections once they are idle for ${idleSessionTimeoutMs / 1000} s`,
            `ALTER ROLE ${sqlName(user)} SET idle_session_timeout = 0`,
          ),
        ]),
  ];
}

/** Warns if rankd would trust any program that takes over the server's port while the server is down. */
function proof({ isProven, user }: ServerFacts): Finding[] {
  if (isProven) return [];
  const fix = `give ${user} a SCRAM password and set RANKD_STORE_PASSWORD, or connect through the server's socket`;
  return [warn('server', "nothing proves the server's identity: there is no password and no TLS", fix)];
}

function standbys({ standbyCount, synchronousCount }: ServerFacts): Finding[] {
  if (standbyCount === 0) return [];
  if (synchronousCount > 0) return [ok('standby', 'synchronous: a failover loses nothing that was confirmed')];
  const text = 'asynchronous: a failover can lose the last confirmed writes';
  return [warn('standby', text, 'to prevent that, name the standby in synchronous_standby_names')];
}

function connection({ isEncrypted, isOnThisMachine, isPooled, connections }: ServerFacts): Finding[] {
  const left = connections.most - connections.used;
  return [
    ...(isEncrypted || isOnThisMachine
      ? []
      : [warn('server', 'the connection is not encrypted', 'set store.tls to verify')]),
    ...(isPooled
      ? [
          warn(
            'server',
            'connections go through a pooler, which makes each query slower',
            'connect to the server itself with store.url',
          ),
        ]
      : []),
    ...(left >= connectionsPerDaemon
      ? []
      : [
          warn(
            'server',
            `${left} of its ${connections.most} connections are free; a daemon needs ${connectionsPerDaemon}`,
            "raise the server's max_connections, or check which clients are connected",
          ),
        ]),
  ];
}

function rights({ lacks, user, database }: ServerFacts): Finding[] {
  if (lacks === undefined) return [];
  const fix =
    lacks === 'schema'
      ? `set the user in store.url to its owner, or make ${user} a member of that role`
      : `GRANT CREATE ON DATABASE ${sqlName(database)} TO ${sqlName(user)}`;
  const what =
    lacks === 'schema'
      ? 'does not own the rankd schema and cannot migrate it'
      : 'cannot create a schema in the database';
  return [fail('server', `the user ${user} ${what}`, fix)];
}

function skew({ aheadMs }: ServerFacts): Finding[] {
  if (Math.abs(aheadMs) < maxSkewMs) return [];
  return [warn('server', `this machine's clock is ${skewText(aheadMs)}`, 'synchronize both clocks with NTP')];
}

export function nodesFindings(nodes: readonly SeenNode[]): Finding[] {
  const differences = differencesOf(nodes).map(({ setting }) => setting);
  const fixes = [
    ...(differences.includes('version') ? ['install the same version of rankd on each machine'] : []),
    ...(differences.some((one) => one !== 'version') ? ['give each machine the same file, then: rankd reload'] : []),
  ];
  return [
    ...(differences.length === 0
      ? []
      : [
          warn(
            'daemons',
            `the daemons differ in ${differences.join(', ')}`,
            `rankd status shows which daemons agree; ${fixes.join('; ')}`,
          ),
        ]),
    ...skewedClocks(nodes).map(({ name, serverAheadMs }) =>
      warn('daemons', `the clock of ${name} is ${skewText(serverAheadMs)}`, 'synchronize both clocks with NTP'),
    ),
  ];
}
