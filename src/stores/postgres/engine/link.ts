import type { Socket } from 'node:net';
import pg from 'pg';
import { systemClock } from '../../../base/clock.ts';
import { codeOf } from '../../../base/error-code.ts';
import { RankdError } from '../../../base/errors.ts';
import type { ServerAddress } from '../../../base/server-address.ts';
import { serverTime, type TimeLook } from '../server-clock.ts';
import { isLost, oldestServer, standby, superseded, tooOld, toStoreError } from './postgres-error.ts';
import { type Bindings, statementOf, valuesOf } from './statement.ts';
import { isSuperseded } from './timelines.ts';
import { types } from './types.ts';

/** How long a connection may take to be made, and a statement to be answered. */
const connectTimeoutMs = 3_000;
const answerTimeoutMs = 5_000;
/** How soon after a failure the next connection is tried. Whoever asks meanwhile hears of that failure. */
const retryAfterMs = 250;

/** One connection as long as it lasts. Statements that are sent in one turn go out together and are answered in order. */
export interface Session {
  /** A number that no other session of this process has. */
  readonly id: number;
  /** The process of the server that answers, as it said when the connection was made. */
  readonly serverPid: number | null;
  /** What `BEGIN` has to add here for a commit to be durable. */
  readonly durably: readonly string[];
  send<Row extends object>(sql: string, bindings?: Bindings): Promise<Answer<Row>>;
  /** Statements without values, several in one text. */
  sendText(sql: string): Promise<{ command: string }>;
  /** What is sent from now on goes out at the end of the turn, in one piece: each piece costs a system call here and one there. */
  gather(): void;
  /** Breaks it off: the server takes back what is open in it. */
  destroy(): void;
}

export interface Answer<Row> {
  rows: Row[];
  /** How many rows were changed. */
  count: number;
}

/** A connection to the server that is made once it is needed, and made anew if it broke. Its errors are those of the driver. */
export class Link {
  readonly #address: ServerAddress;
  readonly #onTime: (look: TimeLook) => void;
  #session: Promise<Session> | undefined;
  #client: pg.Client | undefined;
  #failure: { error: unknown; at: number } | undefined;
  #isClosed = false;

  readonly #hears: Hearing | undefined;

  /** `onTime` is told the server's time. `hears`: what the connection is there for is to be told what others notify of. */
  constructor(address: ServerAddress, { onTime, hears }: { onTime: (look: TimeLook) => void; hears?: Hearing }) {
    this.#address = address;
    this.#onTime = onTime;
    this.#hears = hears;
  }

  /** Throws a RankdError if no connection can be made. */
  session(): Promise<Session> {
    if (this.#isClosed) return Promise.reject(new RankdError('store_unavailable', 'The database of rankd is closed.'));
    if (this.#client !== undefined && streamOf(this.#client).destroyed) this.#forget();
    const { error, at } = this.#failure ?? { error: undefined, at: Number.NEGATIVE_INFINITY };
    if (this.#session === undefined && systemClock.monotonic() - at < retryAfterMs) return Promise.reject(error);
    this.#session ??= this.#connect();
    return this.#session;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#session?.catch(() => undefined);
    await this.#client?.end().catch(() => undefined);
  }

  #forget(): void {
    this.#client = undefined;
    this.#session = undefined;
  }

  async #connect(): Promise<Session> {
    const client = new pg.Client(optionsFor(this.#address));
    const forget = () => {
      if (this.#client === client) this.#forget();
    };
    client.on('error', forget); // whoever waits for an answer is told by the answer
    client.on('end', forget);
    try {
      await client.connect();
      const askedAt = systemClock.monotonic();
      const facts = await lookAtServer(client, this.#address);
      this.#onTime({ askedAt, serverAt: facts.time });
      const session = sessionOn(client, facts);
      if (this.#hears !== undefined) await hear(client, this.#hears);
      this.#client = client;
      this.#failure = undefined;
      return session;
    } catch (error) {
      const failure = toStoreError(error, this.#address);
      this.#failure = { error: failure, at: systemClock.monotonic() };
      this.#forget();
      client.end().catch(() => undefined);
      throw failure;
    }
  }
}

/** A channel of NOTIFY, and who is told of each message in it. */
export interface Hearing {
  channel: string;
  told(message: string): void;
}

async function hear(client: pg.Client, { channel, told }: Hearing): Promise<void> {
  client.on('notification', ({ payload = '' }) => told(payload));
  await client.query(`LISTEN ${channel}`);
}

function optionsFor({ host, port, database, user, password, tls }: ServerAddress): pg.ClientConfig {
  return {
    ...{ host, port, database, user, types, pipeline: true, application_name: 'rankd' },
    password: password?.() ?? '', // without one, the driver would look for ~/.pgpass
    ssl: tls && { rejectUnauthorized: true, ...(tls.ca !== undefined && { ca: tls.ca }) },
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: answerTimeoutMs,
    keepAlive: true,
  } as pg.ClientConfig;
}

interface ServerFacts {
  version: number;
  versionName: string;
  isReadOnly: boolean;
  isAsync: boolean;
  /** Which cluster it is, and how often a standby of it became its primary. */
  cluster: string;
  time: number;
  timeline: number;
}

async function lookAtServer(client: pg.Client, address: ServerAddress): Promise<ServerFacts> {
  const { rows } = await client.query<ServerFacts>(
    `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS "versionName",
            current_setting('transaction_read_only') = 'on' AS "isReadOnly",
            current_setting('synchronous_commit') IN ('off', 'local') AS "isAsync",
            (SELECT system_identifier::text FROM pg_control_system()) AS cluster, ${timeline} AS timeline,
            ${serverTime} AS time`,
  );
  const [facts] = rows;
  if (facts === undefined) throw new TypeError('the server answered nothing');
  if (facts.version < oldestServer * 10_000) throw tooOld(address, facts.versionName);
  if (facts.isReadOnly) throw standby(address);
  if (isSuperseded(facts)) throw superseded(address);
  return facts;
}

/** The name of the file that a primary writes to begins with its timeline: it tells of a promotion before the first checkpoint does. */
const timeline = `
  CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())
  ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END`;

/** https://www.postgresql.org/docs/current/errcodes-appendix.html: read_only_sql_transaction */
const readOnly = '25006';

let sessions = 0;

function sessionOn(client: pg.Client, { isAsync }: ServerFacts): Session {
  sessions += 1;
  /** A server that ends, or takes no writes any more: the next connection may lead to one that does. */
  const leaveServer = (error: unknown): never => {
    if (codeOf(error) === readOnly || isLost(error)) streamOf(client).destroy();
    throw error;
  };
  return {
    id: sessions,
    serverPid: (client as unknown as { processID: number | null }).processID, // the driver's types leave it out
    durably: isAsync ? ['SET LOCAL synchronous_commit = on'] : [],
    async send<Row extends object>(sql: string, bindings: Bindings = {}) {
      const statement = statementOf(sql);
      const sent = client.query<Row>({
        ...{ name: statement.name, text: statement.text, values: valuesOf(statement, bindings) },
      });
      const { rows, rowCount } = await sent.catch(leaveServer);
      return { rows, count: rowCount ?? 0 };
    },
    async sendText(sql) {
      const result: unknown = await client.query(sql);
      const last = (Array.isArray(result) ? result.at(-1) : result) as { command: string };
      return { command: last.command };
    },
    gather() {
      const stream = streamOf(client);
      if (stream.writableCorked > 0) return;
      stream.cork();
      setImmediate(() => stream.uncork());
    },
    destroy: () => streamOf(client).destroy(),
  };
}

/** The driver has no other way to break a connection off at once, or to send several statements in one piece. */
function streamOf(client: pg.Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream;
}
