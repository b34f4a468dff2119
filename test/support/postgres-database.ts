import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import type { ServerAddress } from '../../src/base/net.ts';
import type { DeskAnswer, DeskRequest } from './postgres-desk.ts';

/**
 * A database for one test, on the PostgreSQL server of this run. Disposal makes a migrated one available to later
 * tests.
 */
export interface PostgresDatabase extends AsyncDisposable {
  address: ServerAddress;
  /** The address as a URL, without a password. */
  url: string;
  /** The CA certificate (PEM) for TLS on localhost, where the user `guarded` needs the password `geheim`. */
  authority: string;
}

/** `migrated`: with rankd's schema. */
export async function createPostgresDatabase(make: 'migrated' | 'empty' = 'migrated'): Promise<PostgresDatabase> {
  const answer = await ask({ make });
  if (!('address' in answer)) throw new Error('no database');
  const { password } = answer;
  const address = { ...answer.address, password: password === undefined ? undefined : () => password };
  const release = async () => {
    if (make === 'migrated') await ask({ release: address.database });
  };
  const { host, port, user, database } = address;
  const url = `postgres://${user}@${host.startsWith('/') ? '127.0.0.1' : host}:${port}/${database}`;
  return { address, url, authority: answer.authority, [Symbol.asyncDispose]: release };
}

export async function postgresDatabase(make?: 'migrated' | 'empty'): Promise<PostgresDatabase> {
  const database = await createPostgresDatabase(make);
  onTestFinished(() => database[Symbol.asyncDispose]());
  return database;
}

export function clientOf({ host, port, user, database, password }: ServerAddress): pg.Client {
  return new pg.Client({ host, port, user, database, password: password?.() });
}

/** Runs SQL on a new connection. Returns the rows of the last query. */
export async function onServer(address: ServerAddress, sql: string) {
  const client = clientOf(address);
  await client.connect();
  try {
    const results = [await client.query<Record<string, unknown>>(sql)].flat();
    return results.at(-1)?.rows ?? [];
  } finally {
    await client.end();
  }
}

let desk: { socket: Socket; answers: Array<(line: string) => void> } | undefined;

async function ask(request: DeskRequest): Promise<DeskAnswer> {
  desk ??= openDesk();
  const { socket, answers } = desk;
  const line = await new Promise<string>((resolve) => {
    answers.push(resolve);
    socket.write(`${JSON.stringify(request)}\n`);
  });
  const answer = JSON.parse(line) as DeskAnswer;
  if ('error' in answer) throw new Error(answer.error);
  return answer;
}

function openDesk() {
  const socket = connect(inject('postgresDesk'));
  socket.unref();
  const answers: Array<(line: string) => void> = [];
  createInterface({ input: socket }).on('line', (line) => answers.shift()?.(line));
  return { socket, answers };
}
