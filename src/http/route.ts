import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import type { RankdError } from '../base/errors.ts';
import type { KeyRecord, Scope } from '../core/model.ts';
import type { DaemonContext, LiveContext } from '../usecases/daemon-context.ts';
import type { Family } from './compat/family.ts';
import { type PublicCode, statuses } from './errors.ts';
import { parseFields } from './fields.ts';
import { jsonBody } from './request-body.ts';
import type { Throttle } from './throttle.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    needsKey?: boolean;
    /** The service that the route imitates. */
    family?: Family;
    /** Returns false if the configuration disables the route, which then returns 404. */
    isServed?: (app: DaemonContext) => boolean;
  }
  interface FastifyInstance {
    /** The errors of each route, keyed by path. Excludes routes that a setting can disable. */
    refusals: ReadonlyMap<string, ReadonlyArray<{ code: PublicCode; status: number }>>;
  }
}

/**
 * A route and its description. rankd generates Fastify's routes, the OpenAPI document, the /docs page and the tables in
 * docs/api.md from a single list of routes.
 */
export interface Route<
  Body extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  method: 'GET' | 'POST';
  path: string;
  /** Absent if the documentation omits the route, for example because the route imitates another service. */
  docs?: RouteDocs;
  /** Absent if the route requires no key. */
  key?: KeyUse;
  /**
   * Returns false if the configuration disables the route. Routes that imitate a service depend on `compat` instead.
   */
  isServed?: (app: DaemonContext) => boolean;
  /**
   * True if the route changes ranks. It then accepts an `Idempotency-Key`, and its response contains the change's id.
   */
  changesRanks?: boolean;
  /** The query parameters, except the place. */
  query?: Query;
  body?: Content<Body>;
  /** The 200 responses, one for each content type. */
  answers?: readonly [Content<Answer>, ...Content[]];
  /** Response headers, in addition to those that `key` and `changesRanks` imply. */
  answerHeaders?: readonly AnswerHeader[];
  /** Error codes, in addition to those of all routes and those of all routes that require a key. */
  codes?: readonly PublicCode[];
  /** rankd sends the returned object as JSON. A handler that sends the response itself returns the reply or nothing. */
  handler: (exchange: Exchange<z.output<Body>, z.output<Query>>) => Result<z.input<Answer>>;
}

export type DescribedRoute = Route & { docs: RouteDocs };

interface RouteDocs {
  /** The operation's name in generated clients. */
  id: string;
  summary: string;
  description: string;
}

interface KeyUse {
  scope: Scope;
  /**
   * The header that contains the key: for `bearer`, only `Authorization`; for `bearer or header`, also `x-api-key`; for
   * a family, the headers that the imitated service's clients send.
   */
  in: 'bearer' | 'bearer or header' | Family;
  place: 'body' | 'query' | 'query or Roblox-Id';
}

export interface Content<Schema extends z.ZodType = z.ZodType> {
  description: string;
  /** JSON by default. */
  type?: string;
  /** The schema's name in the OpenAPI document. */
  name?: string;
  schema?: Schema;
  example?: z.input<Schema>;
}

type Result<Answer> = Answer | Promise<Answer> | FastifyReply | Promise<FastifyReply> | Promise<undefined> | undefined;

/** Defines a route. The types check that its handler and examples match its schemas. */
export function route<Body extends z.ZodType, Query extends z.ZodType, Answer extends z.ZodType>(
  definition: Route<Body, Query, Answer>,
): Route {
  return definition as unknown as Route;
}

interface ApiContext {
  live: LiveContext;
  throttle: Throttle;
  /** Resolves key records in call order, because rankd makes changes in order of arrival. */
  inOrderOfArrival: (record: FoundKey | Promise<FoundKey>) => Promise<FoundKey>;
  /** Handles requests from Discord. Its code is loaded only if `discord` is configured. */
  answerDiscord: (exchange: Exchange) => Promise<object>;
  routes: readonly Route[];
}

export type FoundKey = KeyRecord | RankdError;

const anything = z.unknown();

export class Exchange<Body = unknown, Query = unknown> {
  readonly api: ApiContext;
  /** The context when the handler was called; a later reload does not change it. */
  readonly app: DaemonContext;
  readonly route: Route;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;

  constructor(api: ApiContext, route: Route, request: FastifyRequest, reply: FastifyReply) {
    this.api = api;
    this.app = api.live.current;
    this.route = route;
    this.request = request;
    this.reply = reply;
  }

  /** Throws `invalid_request` or `body_too_large`. */
  body(): Body {
    return parseFields(this.route.body?.schema ?? anything, jsonBody(this.request)) as Body;
  }

  /** Throws `invalid_request`. */
  query(): Query {
    return parseFields(this.route.query ?? anything, this.request.query) as Query;
  }
}

export function registerRoutes(server: FastifyInstance, api: ApiContext): void {
  const refusals = new Map<string, Array<{ code: PublicCode; status: number }>>();
  server.decorate('refusals', refusals);
  for (const route of api.routes) {
    const { method, path, key, handler } = route;
    const family = familyOf(route);
    const isServed = family ? ({ compat }: DaemonContext) => compat.includes(family.name) : route.isServed;
    if (isServed === undefined)
      refusals.set(
        path,
        allCodes(route).map((code) => ({ code, status: statuses[code] })),
      );
    server.route({
      ...{ method, url: path },
      config: { needsKey: key !== undefined, ...(family && { family }), ...(isServed && { isServed }) },
      handler: (request, reply) => handler(new Exchange(api, route, request, reply)),
    });
  }
}

export function familyOf({ key }: Route): Family | undefined {
  return typeof key?.in === 'object' ? key.in : undefined;
}

export function isDescribed(route: Route): route is DescribedRoute {
  return route.docs !== undefined;
}

const requestId = z
  .string()
  .regex(/^req_\w+$/)
  .describe('The id of the request, as in x-request-id and in the log.');

/** The fields of every successful /v2 response. */
export const answerFields = { success: z.literal(true), requestId, message: z.string() };
export const workspaceId = z.string().regex(/^ws_\w+$/);
export const changeId = z.string().regex(/^chg_\w+$/);

export const placeIdHelp = 'The place id (game.PlaceId). You can also write it `placeId`.';

export const answerHeaders = {
  'x-request-id': { description: 'The id of the request in the log.', schema: requestId },
  'x-simulated-group': {
    description: 'Present if the group is simulated: nothing touches Roblox.',
    schema: z.literal('true'),
  },
  'Retry-After': { description: 'Seconds to wait; present if waiting helps.', schema: z.int().min(1) },
  'RateLimit-Policy': {
    description: 'The inbound limits that count this request, if any: q requests in w seconds.',
    schema: z.string(),
  },
  RateLimit: {
    description: 'The remainder of each limit: r requests, and t seconds until it is full again.',
    schema: z.string(),
  },
  Deprecation: {
    description:
      'Present if the request used a secret that a rotation has replaced: the time of the rotation, as `@` and seconds since 1970 (RFC 9745).',
    schema: z.string().regex(/^@\d+$/),
  },
  Sunset: {
    description: 'The time from which rankd refuses that secret, as an HTTP date (RFC 8594).',
    schema: z.string().regex(/ GMT$/),
  },
  'x-rank-change': { description: 'The id of the change in the history.', schema: changeId },
  'x-rankd-proof': {
    description:
      'Present if the request has the header x-rankd-question. `rankd doctor --url` uses it to verify that its own daemon responded.',
    schema: z.string().regex(/^[\w-]{43}$/),
  },
  'idempotent-replayed': {
    description: 'Present if this is the outcome of an earlier request with the same Idempotency-Key.',
    schema: z.literal('true'),
  },
};

export type AnswerHeader = keyof typeof answerHeaders;

const codesOfEveryRequest = [
  'invalid_request',
  'request_timeout',
  'headers_too_large',
  'body_too_large',
  'internal',
] as const satisfies PublicCode[];

const codesOfKeys = [
  'missing_placeid',
  'missing_authorization',
  'invalid_key',
  'place_not_whitelisted',
  'key_not_allowed',
  'too_many_requests',
  'store_unavailable',
  'shutting_down',
] as const satisfies PublicCode[];

export const platformCodes = [
  'platform_rejected',
  'platform_credential',
  'platform_busy',
  'platform_unavailable',
] as const satisfies PublicCode[];

export const changeCodes = [
  'rank_not_allowed',
  'member_protected',
  'member_suspended',
  'ranker_not_allowed',
  'above_acting_account',
  'member_not_found',
  'unknown_rank',
  'ambiguous_rank',
  'configuration_misfit',
  'reason_required',
  'idempotency_mismatch',
  'idempotency_in_progress',
  'cooldown',
  'key_paused',
  ...platformCodes,
  'outcome_unknown',
] as const satisfies PublicCode[];

/** Returns all of a route's error codes except `method_not_allowed`. */
export function allCodes({ key, codes = [] }: Route): PublicCode[] {
  return [...codesOfEveryRequest, ...(key === undefined ? [] : codesOfKeys), ...codes];
}

export const commonHeaders = ['x-request-id', 'x-simulated-group'] as const satisfies AnswerHeader[];

/** Returns a route's response headers, except for those that every response has. */
export function ownHeaders({ key, changesRanks = false, answerHeaders = [] }: Route): AnswerHeader[] {
  return [
    ...(key === undefined ? [] : (['RateLimit-Policy', 'RateLimit', 'Deprecation', 'Sunset'] as const)),
    ...(changesRanks ? (['x-rank-change', 'idempotent-replayed'] as const) : []),
    ...answerHeaders,
  ];
}
