import { type ConnectionFailure, connectionFailure } from '../base/connection-cause.ts';
import type { Clock, LiveFinding } from '../ports/index.ts';
import { type Answer, fetchAnswer, keyMask } from './upstream/answer.ts';
import {
  type ListedRole,
  memberOf,
  parseBaseRoleId,
  parseMembershipPage,
  parseNamedUsers,
  parseRole,
  parseRolePage,
  parseUserName,
} from './upstream/resources.ts';
import { deviations, type SchemaName } from './upstream/schemas.ts';

export interface LiveCheckOptions {
  groupId: number;
  apiKey: string;
  baseUrl: string;
  legacyBaseUrl: string;
  usersBaseUrl: string;
  clock: Clock;
  signal: AbortSignal;
  /** The member to use in the write test, which changes nothing. If omitted, the write test is skipped. */
  memberId?: number | undefined;
}

const maxBodyBytes = 1024 * 1024;
const maxSkewMs = 30_000;
/** Reads were observed to lag behind a write by up to 6.75 s. */
const readLagMs = 10_000;
/** Calls per minute for each operation, from the Open Cloud reference. */
const documentedLimits = { group: 150, other: 300 };

/**
 * Checks, with at most 17 reads, that Open Cloud still responds as rankd expects. If `memberId` is set, also assigns a
 * role that the member already holds and unassigns one that the member lacks, with three more reads. Neither write
 * changes anything: "If the user already holds the specified role, no action is taken" (Open Cloud reference,
 * AssignRole).
 */
export async function checkLive(options: LiveCheckOptions): Promise<LiveFinding[]> {
  const platform = new LivePlatform(options);
  const findings: LiveFinding[] = [];
  const check = async (name: string, run: () => Promise<string[]>) => {
    try {
      const details = await run();
      findings.push({ check: name, result: details.length === 0 ? 'ok' : 'differs', details });
    } catch (error) {
      const details = error instanceof Misshapen ? error.flaws : [platform.masked(wordsOf(error))];
      if (error instanceof Unreached) details.push(`try: ${error.hint}`);
      findings.push({ check: name, result: 'FAIL', details });
    }
  };
  const seen: Seen = { roles: [], hasSecondPage: false, actingId: undefined, ownerId: undefined, baseId: undefined };
  for (const [name, run] of Object.entries(checks)) await check(name, () => run(platform, seen));
  await check('rate limits', async () => platform.limitFlaws());
  const { memberId } = options;
  if (memberId !== undefined) await check('writes', () => tryWrites(platform, seen, { ...options, memberId }));
  return findings;
}

interface Seen {
  roles: ListedRole[];
  hasSecondPage: boolean;
  actingId: number | undefined;
  ownerId: number | undefined;
  baseId: number | undefined;
}

type Check = (platform: LivePlatform, seen: Seen) => Promise<string[]>;

const checks: Record<string, Check> = {
  async key(platform, seen) {
    const json = await platform.introspect();
    const { authorizedUserId, enabled, expired, scopes } = json;
    if (typeof authorizedUserId === 'number') seen.actingId = authorizedUserId;
    if (enabled === false || expired === true) throw new Error('the key is disabled or expired');
    const named = Array.isArray(scopes) ? scopes.map((scope) => Object(scope)['name']) : [];
    return [...deviations(json, 'ApiKey'), ...(named.includes('group') ? [] : ['ApiKey.scopes: none is named group'])];
  },

  async group(platform, seen) {
    const askedAt = Date.now();
    const { headers, json } = await platform.read('');
    const skewMs = Math.abs((askedAt + Date.now()) / 2 - Date.parse(headers.get('date') ?? ''));
    const owner = /^users\/(\d+)$/.exec(String(json['owner']))?.[1];
    if (owner !== undefined) seen.ownerId = Number(owner);
    return [
      ...deviations(json, 'Group'),
      ...(json['owner'] === undefined || owner !== undefined ? [] : ['Group.owner: not users/ID']),
      ...(json['locked'] === true ? ['Group.locked: the group is locked, so no member can be ranked'] : []),
      ...(skewMs > maxSkewMs ? ["Date: more than 30 s from this machine's clock"] : []),
    ];
  },

  async roles(platform, seen) {
    const found: string[] = [];
    let token: string | undefined;
    for (let page = 1; page <= 2; page += 1) {
      const { json } = await platform.read(`/roles?maxPageSize=20${token === undefined ? '' : `&pageToken=${token}`}`);
      seen.hasSecondPage = page > 1;
      found.push(...deviations(json, 'ListGroupRolesResponse'));
      const { items, next } = readable(json, 'ListGroupRolesResponse', parseRolePage);
      const isNew = ({ id }: ListedRole) => seen.roles.every((role) => role.id !== id);
      if (page > 1 && !items.some(isNew)) return [...found, 'nextPageToken: the second page repeats the first'];
      seen.roles.push(...items.filter(isNew));
      token = next && encodeURIComponent(next);
      if (token === undefined) break;
    }
    const ranks = seen.roles.map(({ rank }) => rank);
    const shared = ranks.filter((rank, index) => ranks.indexOf(rank) !== index && rank !== 1);
    return [
      ...found,
      ...(token === undefined ? [] : ['GroupRole: more than 40 roles']),
      ...(ranks.includes(0) ? [] : ['GroupRole.rank: no guest role (rank 0)']),
      ...(ranks.includes(1) ? [] : ['GroupRole.rank: no role has rank 1']),
      ...(shared.length > 0 ? ['GroupRole.rank: roles above rank 1 share a rank, so games must send the role id'] : []),
    ];
  },

  async pages(platform, { hasSecondPage }) {
    if (hasSecondPage) return []; // the `roles` check has already read a second page
    const first = parseRolePage((await platform.read('/roles?maxPageSize=1')).json);
    if (first.next === undefined) return ['nextPageToken: missing after a page of 1'];
    const token = encodeURIComponent(first.next);
    const second = parseRolePage((await platform.read(`/roles?maxPageSize=1&pageToken=${token}`)).json);
    if (first.items.length !== 1 || second.items.length !== 1) return ['maxPageSize: a page of 1 has a different size'];
    return first.items[0]?.id === second.items[0]?.id ? ['pageToken: the second page repeats the first'] : [];
  },

  async role(platform, { roles }) {
    const role = roles.find(({ rank }) => rank > 0 && rank < 255);
    if (role === undefined) return ['GroupRole: the group has no role to check'];
    const { json } = await platform.read(`/roles/${role.id}`);
    const alone = readable(json, 'GroupRole', parseRole);
    const differing = (['id', 'name', 'rank'] as const).filter((field) => alone?.[field] !== role[field]);
    return [...deviations(json, 'GroupRole'), ...differing.map((field) => `GroupRole.${field}: differs from the list`)];
  },

  async 'public list'(platform, seen) {
    const json = await platform.readPublic('roles');
    seen.baseId = readable(json, 'PublicRoleList', parseBaseRoleId);
    const listed = (json['roles'] as Array<{ id: number; rank: number; isBase: boolean }>) ?? [];
    const isSame = ({ id, rank }: ListedRole) => listed.some((role) => role.id === id && role.rank === rank);
    return [
      ...deviations(json, 'PublicRoleList'),
      ...(listed.filter(({ isBase }) => isBase === true).length === 1 ? [] : ['isBase: not set on exactly one role']),
      ...(listed.length === seen.roles.length && seen.roles.every(isSame)
        ? []
        : ["roles: differ from Open Cloud's; some are private, or the group was migrated"]),
    ];
  },

  async 'acting account'(platform, { actingId, baseId }) {
    if (actingId === undefined) return ['ApiKey.authorizedUserId: missing'];
    const { json } = await platform.read(`/memberships?${filterBy(`user == 'users/${actingId}'`)}`);
    const [membership] = readable(json, 'ListGroupMembershipsResponse', parseMembershipPage).items;
    if (membership === undefined) return [...memberFlaws(json), 'GroupMembership: the acting account is not a member'];
    const { role, roles = [] } = membership;
    const isListed = role === undefined || role === baseId || roles.includes(role);
    return [...memberFlaws(json), ...(isListed ? [] : ['GroupMembership.role: not among roles'])];
  },

  async names(platform, { actingId }) {
    if (actingId === undefined) return ['ApiKey.authorizedUserId: missing, so no name was looked up'];
    const user = await platform.readUser(actingId);
    const { status, json } = await platform.findNames([readable(user, 'User', parseUserName)]);
    if (status === 401 || status === 403)
      throw new Error(
        `refused with ${status}: Roblox no longer looks up names without a login, so rankd needs user ids`,
      );
    if (status !== 200) throw new Error(`answered with ${status}`);
    const [found] = readable(json, 'NamedUserList', parseNamedUsers);
    return [
      ...deviations(user, 'User'),
      ...deviations(json, 'NamedUserList'),
      ...(found?.id === actingId
        ? []
        : ["NamedUserList.data: the acting account's name resolves to a different user, or to none"]),
    ];
  },

  async 'base members'(platform, { baseId }) {
    if (baseId === undefined) return ['the base role is unknown, so its members were not read'];
    const { json } = await platform.read(
      `/memberships?maxPageSize=1&${filterBy(`role == 'groups/${platform.groupId}/roles/${baseId}'`)}`,
    );
    return memberFlaws(json);
  },

  async 'no member'(platform) {
    const { json } = await platform.read(`/memberships?${filterBy("user == 'users/1'")}`);
    return memberFlaws(json); // user 1 is Roblox itself, a member of few groups; the usual response is an empty list
  },

  async 'all groups'(platform, { actingId, ownerId }) {
    const users = [actingId, ownerId].filter((id) => id !== undefined).map((id) => `'users/${id}'`);
    const { json } = await platform.readAny(`/memberships?${filterBy(`user in [${users.join(', ')}]`)}`);
    return memberFlaws(json);
  },

  async 'bad filter'(platform) {
    const { status, json } = await platform.ask(`/memberships?${filterBy('nonsense')}`);
    return [
      ...(status === 400 ? [] : [`status: ${status} instead of 400`]),
      ...(json['code'] === 'INVALID_ARGUMENT' && typeof json['message'] === 'string'
        ? []
        : ['error: no code INVALID_ARGUMENT with a message']),
    ];
  },

  async 'wrong key'(platform) {
    const { status, json } = await platform.ask('', { apiKey: 'not-a-key' });
    return [
      ...(status === 401 ? [] : [`status: ${status} instead of 401`]),
      ...(Array.isArray(json['errors']) ? [] : ['errors: no array']),
    ];
  },

  async migration(platform) {
    const { status } = await platform.readPublic('migration');
    return status === 'NotMigrated' ? [] : ['status: not NotMigrated, so ranks might not show which role is higher'];
  },
};

/**
 * Assigns a role that the member already holds and unassigns one that the member lacks. Checks that neither the
 * responses nor a later read shows a change.
 */
async function tryWrites(
  platform: LivePlatform,
  { roles, actingId, baseId }: Seen,
  { memberId, clock, signal }: LiveCheckOptions & { memberId: number },
): Promise<string[]> {
  const read = async (userId: number | undefined) => {
    const { json } = await platform.read(`/memberships?${filterBy(`user == 'users/${userId}'`)}`);
    const [membership] = parseMembershipPage(json).items;
    return membership === undefined ? undefined : memberOf(membership).roleIds.filter((id) => id !== baseId);
  };
  const before = await read(memberId);
  if (before === undefined) throw new Error('the user is not a member of the group');
  const acting = await read(actingId);
  const highestRank = Math.max(0, ...roles.filter(({ id }) => acting?.includes(id)).map(({ rank }) => rank));
  const writable = roles.filter(({ id, rank }) => rank > 0 && rank < highestRank && id !== baseId);
  const held = writable.find(({ id }) => before.includes(id));
  const unheld = writable.find(({ id }) => !before.includes(id));
  const details: string[] = [];
  for (const [verb, role] of Object.entries({ assign: held, unassign: unheld })) {
    if (role === undefined) {
      details.push(`${verb}: not tried, because no suitable role is below the acting account's`);
      continue;
    }
    const { status, json } = await platform.write(memberId, verb, role.id);
    if (status < 200 || status > 299) throw new Error(`${verb} was refused with ${status}`);
    if (status !== 200) details.push(`${verb}: status ${status} instead of 200`);
    details.push(...deviations(json, 'GroupMembership').map((flaw) => `${verb}: ${flaw}`));
    const after = rolesShown(json)?.filter((id) => id !== baseId);
    if (String(after) !== String(before)) details.push(`${verb}: the response does not show the member's roles`);
  }
  await clock.sleep(readLagMs, signal);
  if (String(await read(memberId)) !== String(before)) details.push('a later read shows different roles');
  return details;
}

/** Returns the role ids from the response to a write, or `undefined` if it contains none, which rankd tolerates. */
function rolesShown(json: Json): number[] | undefined {
  try {
    return parseMembershipPage({ groupMemberships: [json] }).items.flatMap((answered) => memberOf(answered).roleIds);
  } catch {
    return undefined;
  }
}

/** Calls the platform without pacing, retries or assumptions about responses. */
class LivePlatform {
  readonly groupId: number;
  readonly masked: (text: string) => string;
  readonly #options: LiveCheckOptions;
  readonly #limits: Array<{ limit: string | null; expected: number }> = [];

  constructor(options: LiveCheckOptions) {
    this.groupId = options.groupId;
    this.masked = keyMask(options.apiKey);
    this.#options = options;
  }

  async introspect(): Promise<Json> {
    const { baseUrl, apiKey } = this.#options;
    return requireOk(await this.#send(`${baseUrl}/api-keys/v1/introspect`, { body: { apiKey } })).json;
  }

  async read(path: string): Promise<LiveResponse> {
    return requireOk(await this.ask(path));
  }

  /** Reads a path under `groups/-`, which matches all groups. */
  async readAny(path: string): Promise<LiveResponse> {
    const { baseUrl, apiKey } = this.#options;
    return requireOk(await this.#send(`${baseUrl}/cloud/v2/groups/-${path}`, { apiKey }));
  }

  async readPublic(path: string): Promise<Json> {
    return requireOk(await this.#send(`${this.#options.legacyBaseUrl}/v1/groups/${this.groupId}/${path}`, {})).json;
  }

  async readUser(userId: number): Promise<Json> {
    const { baseUrl, apiKey } = this.#options;
    return requireOk(await this.#send(`${baseUrl}/cloud/v2/users/${userId}`, { apiKey })).json;
  }

  async findNames(usernames: string[]): Promise<LiveResponse> {
    const body = { usernames, excludeBannedUsers: false };
    return this.#send(`${this.#options.usersBaseUrl}/v1/usernames/users`, { body });
  }

  async write(userId: number, verb: string, roleId: number): Promise<LiveResponse> {
    const body = { role: `groups/${this.groupId}/roles/${roleId}` };
    return this.ask(`/memberships/${userId}:${verb}Role`, { body });
  }

  async ask(path: string, init: { apiKey?: string; body?: object } = {}): Promise<LiveResponse> {
    const { baseUrl, apiKey } = this.#options;
    const response = await this.#send(`${baseUrl}/cloud/v2/groups/${this.groupId}${path}`, { apiKey, ...init });
    if (response.status === 200) {
      const expected = path === '' ? documentedLimits.group : documentedLimits.other;
      this.#limits.push({ limit: response.headers.get('x-ratelimit-limit'), expected });
    }
    return response;
  }

  limitFlaws(): string[] {
    const missing = this.#limits.filter(({ limit }) => limit === null).length;
    const other = this.#limits.filter(
      ({ limit, expected }) => limit !== null && Number.parseInt(limit, 10) !== expected,
    );
    return [
      ...(missing > 0 ? [`x-ratelimit-limit: missing in ${missing} of ${this.#limits.length} responses`] : []),
      ...(other.length > 0 ? [`x-ratelimit-limit: not the documented limit in ${other.length} responses`] : []),
    ];
  }

  async #send(url: string, { apiKey, body }: { apiKey?: string; body?: object }): Promise<LiveResponse> {
    const headers: Record<string, string> = { accept: 'application/json', 'cache-control': 'no-cache' };
    if (apiKey !== undefined) headers['x-api-key'] = apiKey;
    if (body !== undefined) headers['content-type'] = 'application/json';
    const { signal } = this.#options;
    const init: RequestInit = { method: body === undefined ? 'GET' : 'POST', headers, redirect: 'error', signal };
    if (body !== undefined) init.body = JSON.stringify(body);
    const answer = await fetchAnswer(globalThis.fetch, url, init, maxBodyBytes).catch((cause) => {
      throw new Unreached(connectionFailure(cause, { at: new URL(url).host }), cause);
    });
    return { status: answer.status, headers: answer.headers, json: jsonOf(answer) };
  }
}

type Json = Record<string, unknown>;

interface LiveResponse {
  status: number;
  headers: Headers;
  json: Json;
}

function jsonOf({ body }: Answer): Json {
  try {
    return Object(JSON.parse(body ?? ''));
  } catch {
    return {};
  }
}

function requireOk(response: LiveResponse): LiveResponse {
  if (response.status !== 200) throw new Error(`answered with ${response.status}`);
  return response;
}

/** Thrown if a request gets no response. Only the hint contains the address. */
class Unreached extends Error {
  readonly hint: string;

  constructor({ words, hint }: ConnectionFailure, cause: unknown) {
    super(`Roblox can't be reached: ${words}`, { cause });
    this.hint = hint;
  }
}

/** Thrown if a response lacks a required field, or a field has the wrong type. */
class Misshapen extends Error {
  readonly flaws: string[];

  constructor(flaws: string[], cause: unknown) {
    super('the response has a different shape', { cause });
    this.flaws = flaws;
  }
}

function readable<T>(json: unknown, schema: SchemaName, parse: (json: unknown) => T): T {
  try {
    return parse(json);
  } catch (cause) {
    const flaws = deviations(json, schema);
    throw new Misshapen(flaws.length > 0 ? flaws : [wordsOf(cause)], cause);
  }
}

function memberFlaws(json: unknown): string[] {
  readable(json, 'ListGroupMembershipsResponse', parseMembershipPage);
  return deviations(json, 'ListGroupMembershipsResponse');
}

function filterBy(expression: string): string {
  return `filter=${encodeURIComponent(expression)}`;
}

/** A parser never quotes the response in its error, so the message is safe to report. */
function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : 'failed';
}
