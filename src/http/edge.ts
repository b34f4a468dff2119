import type { FastifyReply, FastifyRequest } from 'fastify';
import { RankdError } from '../base/errors.ts';
import type { KeyRecord, Scope } from '../core/model.ts';
import type { DaemonContext, LiveContext } from '../usecases/daemon-context.ts';
import { authenticateRequest, bearerOf, fingerprintIn } from './authenticate.ts';
import { authorize, authorizeChange } from './authorize.ts';
import { placeOf } from './ids.ts';
import type { Throttle } from './throttle.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True if only callers with a key are answered. */
    needsKey?: boolean;
  }
}

/** What all routes for callers with a key share. */
export interface Edge {
  live: LiveContext;
  throttle: Throttle;
  /** The members that requests name are changed in the order in which the requests arrived. */
  inOrderOfArrival: (record: Authenticated | Promise<Authenticated>) => Promise<Authenticated>;
}

type Authenticated = KeyRecord | RankdError;

/** Who sent a request, and from which place; `undefined` if the key needs none. */
export interface LetIn {
  caller: KeyRecord;
  placeId: number | undefined;
}

/**
 * Lets the caller of a route in that names its place in the query, or leaves that to the header `Roblox-Id`. Throws the refusal.
 * `secret` says where the route looks for the key.
 */
export async function letIn(
  app: DaemonContext,
  { throttle, inOrderOfArrival }: Edge,
  { request, reply, scope, secret = keyIn }: Letting,
): Promise<LetIn> {
  const placeId = placeOf(request);
  const found = authenticateRequest(app, request, placeId, fingerprintIn(secret(request)));
  const keyRecord = await (scope === 'verify' ? found : inOrderOfArrival(found));
  const keyed = { request, reply, throttle, keyRecord, placeId, scope };
  const caller = scope === 'verify' ? authorize(app, keyed) : await authorizeChange(app, keyed);
  if (caller instanceof RankdError) throw caller;
  return { caller, placeId };
}

interface Letting {
  request: FastifyRequest;
  reply: FastifyReply;
  scope: Scope;
  secret?: (request: FastifyRequest) => string | undefined;
}

/** The key in `x-api-key`, or else in `Authorization: Bearer`. */
export function keyIn({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return headerText(headers['x-api-key']) ?? bearerOf(headers);
}

/** A header without the spaces around it; `undefined` if it is empty or not there. */
export function headerText(given: string | string[] | undefined): string | undefined {
  return String(given ?? '').trim() || undefined;
}
