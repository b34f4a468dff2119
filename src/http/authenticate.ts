import type { IncomingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { RankdError } from '../base/errors.ts';
import type { KeyRecord } from '../core/model.ts';
import type { DaemonContext } from '../usecases/daemon-context.ts';
import { authenticate, fingerprintOf, type KeyFingerprint } from '../usecases/keys/authenticate.ts';

/** The record of the key in a request's `Authorization` header, or the refusal. A promise only if the store has to wait. */
export function authenticateRequest(
  app: Pick<DaemonContext, 'store'>,
  request: FastifyRequest,
  placeId: number | undefined,
  fingerprint = keyFingerprintOf(request),
): KeyRecord | RankdError | Promise<KeyRecord | RankdError> {
  return fingerprint instanceof RankdError ? fingerprint : authenticate(app, { fingerprint, placeId });
}

/** The latest header of each connection. The next one is mostly the same, and to hash a key costs more than all checks of it. */
const latest = new WeakMap<Duplex, { authorization: string; keyFingerprint: KeyFingerprint | RankdError }>();

function keyFingerprintOf({ headers, raw: { socket } }: FastifyRequest): KeyFingerprint | RankdError {
  const { authorization = '' } = headers;
  const known = latest.get(socket);
  if (known?.authorization === authorization) return known.keyFingerprint;
  const keyFingerprint = fingerprintIn(bearerOf(headers));
  latest.set(socket, { authorization, keyFingerprint });
  return keyFingerprint;
}

/** The same for a secret that stands elsewhere; `undefined` if there is none. */
export function fingerprintIn(secret: string | undefined): KeyFingerprint | RankdError {
  return secret === undefined ? missing : fingerprintOf(secret);
}

export function bearerOf({ authorization = '' }: IncomingHttpHeaders): string | undefined {
  return bearer.exec(authorization)?.[1];
}

const bearer = /^bearer +(\S+) *$/i;
const missing = RankdError.withoutStack(
  'missing_authorization',
  'Send the game key in the header "Authorization: Bearer <key>".',
  { details: { reason: 'no_key' } },
);
