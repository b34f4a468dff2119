import type { Socket } from 'node:net';
import type pg from 'pg';
import { systemClock } from '../../../base/clock.ts';
import { codeOf, RankdError } from '../../../base/errors.ts';
import type { ServerAddress } from '../../../base/net.ts';
import type { Bindings } from '../../sql/database.ts';
import type { ClockReading } from '../server-clock.ts';
import { connectProven, internalsOf, makeClient } from './client.ts';
import { type Inspection, inspectServer } from './inspect-server.ts';
import { isLost, toStoreError } from './postgres-error.ts';
import { statementOf, valuesOf } from './statements.ts';

/** The pause after a failed connection attempt. Queries during the pause fail with the same error. */
const retryAfterMs = 250;

/** An open connection. The server answers statements in the order in which they were sent. */
export interface Session {
  /** Unique within this process. */
  readonly id: number;
  /** The id of the server process, as reported when the connection was made. */
  readonly serverPid: number | null;
  readonly begin: string;
  readonly beginReading: string;
  readonly overridden: readonly string[];
  send<Row extends object>(sql: string, bindings?: Bindings): Promise<Answer<Row>>;
  /** Sends one statement in a separate transaction. */
  sendAlone<Row extends object>(sql: string, bindings?: Bindings): Promise<Answer<Row>>;
  /** Sends one or more statements without parameters, as a single string. */
  sendText(sql: string): Promise<{ command: string }>;
  /** Batches the statements of this event-loop turn into one write, to save system calls on both sides. */
  gather(): void;
  /** Closes the connection immediately, which makes the server roll back any open transaction. */
  destroy(): void;
}

export interface Answer<Row> {
  rows: Row[];
  count: number;
}

export interface LinkOptions {
  onClockReading: (reading: ClockReading) => void;
  /** Receives the cluster's identifier. Throws to reject the connection. */
  checkCluster: (cluster: string) => void;
}

/**
 * Connects to the server on first use, and reconnects after the connection breaks. Statements fail with the driver's
 * own errors.
 */
export class Link {
  readonly #address: ServerAddress;
  readonly #onClockReading: (reading: ClockReading) => void;
  readonly #checkCluster: (cluster: string) => void;
  #session: Promise<Session> | undefined;
  #client: pg.Client | undefined;
  #failure: { error: unknown; at: number } | undefined;
  #isClosed = false;

  constructor(address: ServerAddress, { onClockReading, checkCluster }: LinkOptions) {
    this.#address = address;
    this.#onClockReading = onClockReading;
    this.#checkCluster = checkCluster;
  }

  /** Resolves with the open session, connecting if necessary. Throws a RankdError if it can't connect. */
  session(): Promise<Session> {
    if (this.#isClosed) return Promise.reject(new RankdError('store_unavailable', "rankd's database is closed."));
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
    const client = makeClient(this.#address);
    const forget = () => {
      if (this.#client === client) this.#forget();
    };
    client.on('error', forget); // the driver rejects pending queries itself
    client.on('end', forget);
    try {
      await connectProven(client, this.#address);
      const askedAt = systemClock.monotonic();
      const inspection = await inspectServer(client, this.#address);
      this.#checkCluster(inspection.cluster);
      this.#onClockReading({ askedAt, serverAt: inspection.time });
      const session = sessionOn(client, inspection);
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

/** The SQLSTATE code for read_only_sql_transaction (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
const readOnly = '25006';

let sessions = 0;

function sessionOn(client: pg.Client, { begin, beginReading, overridden, suitsPlainStatements }: Inspection): Session {
  sessions += 1;
  /**
   * Rethrows an error. Disconnects first if the server is read-only, is shutting down or did not respond, because the
   * next connection may reach a primary.
   */
  const leaveServer = (error: unknown): never => {
    if (codeOf(error) === readOnly || isLost(error)) streamOf(client).destroy();
    throw error;
  };
  const send: Session['send'] = async <Row extends object>(sql: string, bindings: Bindings = {}) => {
    const statement = statementOf(sql);
    const { name, text } = statement;
    const sent = client.query<Row>({ name, text, values: valuesOf(statement, bindings) });
    const { rows, rowCount } = await sent.catch(leaveServer);
    return { rows, count: rowCount ?? 0 };
  };
  const sendText: Session['sendText'] = async (sql) => {
    const result: unknown = await client.query(sql);
    const last = (Array.isArray(result) ? result.at(-1) : result) as { command: string };
    return { command: last.command };
  };
  const gather = () => {
    const stream = streamOf(client);
    if (stream.writableCorked > 0) return;
    stream.cork();
    setImmediate(() => stream.uncork());
  };
  const sendBetween: Session['sendAlone'] = async <Row extends object>(sql: string, bindings?: Bindings) => {
    gather();
    const [, answer] = await Promise.all([sendText(begin), send<Row>(sql, bindings), sendText('COMMIT')]);
    return answer;
  };
  return {
    ...{ id: sessions, serverPid: internalsOf(client).processID },
    ...{ begin, beginReading, overridden, send, sendText, gather },
    sendAlone: suitsPlainStatements ? send : sendBetween,
    destroy: () => streamOf(client).destroy(),
  };
}

/**
 * Returns the driver's socket: only the socket can close a connection immediately, or send several statements in one
 * packet.
 */
function streamOf(client: pg.Client): Socket {
  return internalsOf(client).connection.stream;
}
