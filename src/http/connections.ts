import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import type { RankdError } from '../base/errors.ts';
import { fingerprintOf, type KeyFingerprint } from '../usecases/keys/authenticate.ts';
import { networkOf } from './network-of.ts';

/** What is kept of a connection while it is open, and no longer: among it the key that it came with. */
export interface OpenConnection {
  /** What its requests are answered with, in their order: those that are not on their way yet. */
  unanswered: ServerResponse[];
  /** What its latest request presented: the next one mostly presents the same, and hashing a key costs more than all that is checked of it. */
  presented?: { authorization: string | undefined; apiKey: KeyFingerprint | RankdError };
  /** Where it comes from, unless a proxy says something else. */
  network?: string;
}

const connections = new WeakMap<Duplex, OpenConnection>();

export function connectionOf(socket: Duplex): OpenConnection {
  const kept = connections.get(socket);
  if (kept !== undefined) return kept;
  const connection: OpenConnection = { unanswered: [] };
  connections.set(socket, connection);
  return connection;
}

/** The answer is on its way, and so are those before it; or it will be, where it waits for the answers to requests that were sent before. */
export function noteAnswered({ unanswered }: OpenConnection, response: ServerResponse): void {
  const forget = () => void unanswered.splice(0, unanswered.indexOf(response) + 1);
  if (response.socket !== null) forget();
  else response.once('close', forget);
}

/** The API key that a request presents, or the refusal. */
export function fingerprintFrom({
  headers: { authorization },
  notes: { connection },
}: FastifyRequest): KeyFingerprint | RankdError {
  if (connection.presented === undefined || connection.presented.authorization !== authorization) {
    connection.presented = { authorization, apiKey: fingerprintOf(authorization) };
  }
  return connection.presented.apiKey;
}

/** The network that a request comes from; behind a proxy, each request may come from another. */
export function networkFrom(request: FastifyRequest): string {
  if (request.headers['x-forwarded-for'] !== undefined) return networkOf(request.ip);
  const { connection } = request.notes;
  connection.network ??= networkOf(request.ip);
  return connection.network;
}
