import type { IncomingHttpHeaders } from 'node:http';
import type { Operation } from './journal.ts';
import { userOf } from './resources.ts';

export interface FakeRequest {
  operation: Operation;
  method: string;
  headers: Record<string, string>;
  query: URLSearchParams;
  /** The group in the path: an id, or `-` for all groups. */
  groupId: string;
  universeId: number;
  userId: number | undefined;
  /** The role in the path. */
  roleId: number | undefined;
  /** The parsed body; `undefined` if it is not JSON. */
  body: unknown;
  rolePath: unknown;
}

const routes: Array<{ host: FakeHost; method: string; path: RegExp; operation: Operation }> = [
  { host: 'openCloud', method: 'GET', path: /^\/cloud\/v2\/groups\/(?<group>\d+)$/, operation: 'group' },
  { host: 'openCloud', method: 'GET', path: /^\/cloud\/v2\/groups\/(?<group>\d+)\/roles$/, operation: 'roles' },
  {
    host: 'openCloud',
    method: 'GET',
    path: /^\/cloud\/v2\/groups\/(?<group>\d+)\/roles\/(?<role>\d+)$/,
    operation: 'role',
  },
  {
    host: 'openCloud',
    method: 'GET',
    path: /^\/cloud\/v2\/groups\/(?<group>\d+|-)\/memberships$/,
    operation: 'memberships',
  },
  {
    host: 'openCloud',
    method: 'POST',
    path: /^\/cloud\/v2\/groups\/(?<group>\d+)\/memberships\/(?<member>[\w-]+):assignRole$/,
    operation: 'assign',
  },
  {
    host: 'openCloud',
    method: 'POST',
    path: /^\/cloud\/v2\/groups\/(?<group>\d+)\/memberships\/(?<member>[\w-]+):unassignRole$/,
    operation: 'unassign',
  },
  { host: 'openCloud', method: 'GET', path: /^\/cloud\/v2\/users\/(?<member>\d+)$/, operation: 'user' },
  { host: 'users', method: 'POST', path: /^\/v1\/usernames\/users$/, operation: 'userNames' },
  { host: 'openCloud', method: 'POST', path: /^\/api-keys\/v1\/introspect$/, operation: 'introspect' },
  { host: 'legacy', method: 'GET', path: /^\/v1\/groups\/(?<group>\d+)\/roles$/, operation: 'publicRoles' },
  { host: 'legacy', method: 'GET', path: /^\/v1\/groups\/(?<group>\d+)\/migration$/, operation: 'migration' },
  { host: 'develop', method: 'GET', path: /^\/v1\/universes\/(?<universe>\d+)\/places$/, operation: 'places' },
];

/** The fake's hosts. Each host rejects the others' routes. */
export type FakeHost = 'openCloud' | 'legacy' | 'users' | 'develop';

export interface RawRequest {
  host: FakeHost;
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export function parseRequest({ host, method, url, headers, body }: RawRequest): FakeRequest {
  const { pathname, searchParams } = new URL(url, 'http://fake');
  const route = routes.find((one) => one.host === host && one.method === method && one.path.test(pathname));
  const parts = route?.path.exec(pathname)?.groups ?? {};
  const json = parseJson(body);
  const isObject = typeof json === 'object' && json !== null;
  return {
    operation: route?.operation ?? 'unknown',
    method,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
    query: searchParams,
    groupId: parts['group'] ?? '',
    universeId: Number(parts['universe']),
    userId: parts['member'] === undefined ? filteredUser(searchParams) : userOf(parts['member']),
    roleId: parts['role'] === undefined ? undefined : Number(parts['role']),
    body: json,
    rolePath: isObject && 'role' in json ? json.role : undefined,
  };
}

function filteredUser(query: URLSearchParams): number | undefined {
  const [, userId] = /^user == 'users\/(\d+)'$/.exec(query.get('filter') ?? '') ?? [];
  return userId === undefined ? undefined : Number(userId);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // an operation that needs a body then refuses the request
  }
}
