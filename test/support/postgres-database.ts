import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { inject, onTestFinished } from 'vitest';
import type { ServerAddress } from '../../src/stores/postgres/server-address.ts';
import type { DeskAnswer, DeskRequest } from './postgres-desk.ts';

/** A database of its own on the PostgreSQL server of this run; disposing gives it back. */
export interface PostgresDatabase extends AsyncDisposable {
  address: ServerAddress;
}

/** `migrated`: it has rankd's schema, as a first start leaves it. */
export async function createPostgresDatabase(make: 'migrated' | 'empty' = 'migrated'): Promise<PostgresDatabase> {
  const answer = await ask({ make });
  if (!('address' in answer)) throw new Error('no database');
  const { address } = answer;
  const giveBack = async () => {
    if (make === 'migrated') await ask({ giveBack: address.database });
  };
  return { address, [Symbol.asyncDispose]: giveBack };
}

/** The same, gone when the test is. */
export async function postgresDatabase(make?: 'migrated' | 'empty'): Promise<ServerAddress> {
  const database = await createPostgresDatabase(make);
  onTestFinished(() => database[Symbol.asyncDispose]());
  return database.address;
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
