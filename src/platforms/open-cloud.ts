import { asRankdError, isRankdError, RankdError } from '../base/errors.ts';
import type { OutboundProxy } from '../base/outbound-proxy.ts';
import { type Surprise, Surprises } from '../base/surprises.ts';
import type { Credential, Group, Member, NamedUser, Place, Role } from '../core/model.ts';
import type {
  BudgetLedger,
  CallContext,
  Clock,
  MemberList,
  Pace,
  Page,
  Platform,
  Reachability,
  Reservation,
  RoleWrite,
  WriteKind,
} from '../ports/index.ts';
import { baseRoleOmitted, readPages, withShare } from '../ports/platform.ts';
import { BaseRole, type BaseRoleMemory } from './upstream/base-role.ts';
import { UpstreamClient, type UpstreamTuning } from './upstream/client.ts';
import { type Gates, type Operation, openGates, WriteReservation } from './upstream/operations.ts';
import { BaseRoleError, ForbiddenRead, RefusedKey, unavailable } from './upstream/platform-error.ts';
import { Reach } from './upstream/reach.ts';
import {
  type ListedRole,
  type Membership,
  memberOf,
  parseBaseRoleId,
  parseCredential,
  parseGroup,
  parseMembership,
  parseMembershipPage,
  parseNamedUsers,
  parsePlacePage,
  parseRole,
  parseRolePage,
  parseUserName,
  withKinds,
} from './upstream/resources.ts';
import type { SchemaName } from './upstream/schemas.ts';
import { UserNames } from './upstream/user-names.ts';
import { WriteSpacing } from './upstream/write-spacing.ts';

export interface OpenCloudOptions {
  groupId: number;
  apiKey: string;
  /** The Open Cloud host, e.g. `https://apis.roblox.com`. The key is sent to no other host. */
  baseUrl: string;
  /** The host that serves the public role list, e.g. `https://groups.roblox.com`. */
  legacyBaseUrl: string;
  /** The host that looks up user names, e.g. `https://users.roblox.com`. */
  usersBaseUrl: string;
  /** The host that lists places, e.g. `https://develop.roblox.com`. */
  developBaseUrl: string;
  clock: Clock;
  /** By default, the base role's id is not persisted. */
  baseRoleMemory?: BaseRoleMemory;
  /** Set if other nodes can share the rate-limit budget. */
  ledger?: BudgetLedger | undefined;
  proxy?: OutboundProxy | undefined;
  /** See `UpstreamOptions.retriesMisshapen`. */
  retriesMisshapen?: boolean | undefined;
  fetch?: typeof globalThis.fetch;
  tuning?: Partial<OpenCloudTuning>;
}

export interface OpenCloudTuning extends UpstreamTuning {
  publicRolesTimeoutMs: number;
  userNamesTimeoutMs: number;
}

/** The share of a call's remaining time allowed for reading an omitted base role. */
const baseRoleShare = 0.25;

/** A Roblox group, accessed through Open Cloud v2 with an API key. Calls act as the account that owns the key. */
export class OpenCloudPlatform implements Platform {
  /** Reads were observed to lag behind a write by up to 6.75 s. */
  readonly readLagMs = 8_000;
  readonly #groupId: number;
  readonly #apiKey: string;
  readonly #clock: Clock;
  readonly #publicRolesTimeoutMs: number;
  readonly #openCloud: UpstreamClient;
  readonly #legacy: UpstreamClient;
  readonly #users: UpstreamClient;
  readonly #develop: UpstreamClient;
  readonly #userNames: UserNames;
  readonly #gates: Gates;
  readonly #baseRole: BaseRole;
  readonly #writeSpacing: WriteSpacing;
  readonly #surprises: Surprises;
  readonly #reach: Reach;
  /** The base role, cached if the role list omits it. */
  #omitted: ListedRole | undefined;

  /** Throws `config_invalid` if `apiKey` cannot be sent as a header. */
  constructor({
    groupId,
    apiKey,
    baseUrl,
    legacyBaseUrl,
    usersBaseUrl,
    developBaseUrl,
    clock,
    baseRoleMemory: memory = { find: async () => undefined, store: async () => undefined },
    ledger,
    proxy,
    retriesMisshapen,
    fetch = globalThis.fetch,
    tuning = {},
  }: OpenCloudOptions) {
    this.#groupId = groupId;
    this.#apiKey = apiKey;
    this.#clock = clock;
    this.#publicRolesTimeoutMs = tuning.publicRolesTimeoutMs ?? 4_000;
    this.#surprises = new Surprises(clock);
    this.#reach = new Reach(() => clock.now());
    const watched = { surprises: this.#surprises, reach: this.#reach };
    const shared = { clock, fetch, tuning, proxy, retriesMisshapen, ...watched };
    this.#openCloud = new UpstreamClient({ baseUrl, apiKey, ...shared });
    this.#legacy = new UpstreamClient({ baseUrl: legacyBaseUrl, ...shared });
    this.#users = new UpstreamClient({ baseUrl: usersBaseUrl, ...shared });
    this.#develop = new UpstreamClient({ baseUrl: developBaseUrl, ...shared });
    this.#userNames = new UserNames({
      clock,
      ask: (names, call) => this.#askForNames(names, call),
      timeoutMs: tuning.userNamesTimeoutMs ?? 5_000,
    });
    this.#gates = openGates(clock, ledger);
    const sources = {
      publicList: (call: CallContext) => this.#readPublicList(call),
      membersWith: (roleId: number, call: CallContext) => this.#listMembersWith(roleId, call),
    };
    this.#baseRole = new BaseRole({ clock, memory, sources });
    this.#writeSpacing = new WriteSpacing(clock);
  }

  get writeMs(): number {
    const { assign, unassign } = this.#gates;
    return Math.max(this.#openCloud.minTryMs(assign), this.#openCloud.minTryMs(unassign));
  }

  group(call: CallContext): Promise<Group> {
    return this.#get({ operation: 'group', path: '', schema: 'Group', parse: parseGroup }, call);
  }

  async roles(call: CallContext): Promise<Role[]> {
    const listed = await this.#listRoles(call);
    const baseIds = await this.#baseRole.among(listed, call);
    const [omitted] = baseIds.filter((id) => !listed.some((role) => role.id === id));
    return withKinds(omitted === undefined ? listed : [...listed, await this.#readOmittedBase(omitted, call)], baseIds);
  }

  async role(roleId: number, call: CallContext): Promise<ListedRole | undefined> {
    const read = { operation: 'role', path: `/roles/${roleId}`, schema: 'GroupRole', parse: parseRole } as const;
    return this.#get(read, call).catch((error) => {
      if (!isRankdError(error, 'platform_rejected')) throw error;
      return undefined;
    });
  }

  /**
   * Reads the base role, which Roblox can leave out of the role list because every member holds it (source:
   * GroupService.GetRolesInGroupAsync). If the read fails, assumes the name Member and rank 1.
   */
  async #readOmittedBase(id: number, call: CallContext): Promise<ListedRole> {
    this.#surprises.note('roles', baseRoleOmitted);
    const share = withShare(call, { clock: this.#clock, share: baseRoleShare });
    this.#omitted ??= await this.role(id, share).catch(() => undefined);
    return this.#omitted ?? { id, name: 'Member', rank: 1 };
  }

  async getMember(userId: number, call: CallContext): Promise<Member | undefined> {
    const filter = encodeURIComponent(`user == 'users/${userId}'`);
    const pages = this.#pages({ ...membershipPage, path: `/memberships?filter=${filter}` }, call);
    for await (const { items } of pages) {
      const [membership] = items;
      if (membership === undefined) continue;
      const member = sameUser(memberOf(membership), userId);
      this.#baseRole.noteMembership(membership);
      return member;
    }
    return undefined;
  }

  async membersWith({ roleId, after }: MemberList, call: CallContext): Promise<Page<number>> {
    const filter = roleId === undefined ? '' : `&filter=${this.#holdersOf(roleId)}`;
    const path = `/memberships?maxPageSize=100${filter}${at('pageToken', after)}`;
    const { items, next } = await this.#get({ ...membershipPage, path }, call);
    return { items: items.map(({ userId }) => userId), next };
  }

  async findUser(name: string, call: CallContext): Promise<NamedUser | undefined> {
    return this.#userNames.find(name, call).catch((cause) => {
      throw namesUnavailable(cause);
    });
  }

  async userName(userId: number, call: CallContext): Promise<string | undefined> {
    const request = {
      operation: 'user',
      gate: this.#gates.user,
      method: 'GET',
      path: `/cloud/v2/users/${userId}`,
      schema: 'User',
      parse: parseUserName,
    } as const;
    return this.#openCloud.request(request, call).catch((error) => {
      if (!isRankdError(error, 'platform_rejected')) throw error;
      return undefined;
    });
  }

  /** Uses a legacy API that needs no key, because Open Cloud reports only an experience's start place (GetUniverse). */
  async placesOf(universeId: number, call: CallContext): Promise<Place[]> {
    const request = {
      operation: 'places',
      gate: this.#gates.places,
      method: 'GET',
      schema: 'PlaceList',
      parse: parsePlacePage,
    } as const;
    const read = (cursor: string | undefined): Promise<Page<Place>> => {
      const path = `/v1/universes/${universeId}/places?limit=100${at('cursor', cursor)}`;
      return this.#develop.request({ ...request, path }, call).catch((cause) => {
        throw placesUnlisted(universeId, cause);
      });
    };
    const places = new Map<number, Place>();
    for await (const { items } of readPages(read)) for (const place of items) places.set(place.id, place);
    return [...places.values()];
  }

  async reserve(kinds: WriteKind[], call: CallContext): Promise<Reservation> {
    return WriteReservation.of(this.#gates, kinds, call, (gate) => this.#openCloud.minTryMs(gate));
  }

  assignRole(change: RoleWrite, call: CallContext): Promise<Member | undefined> {
    return this.#write('assign', change, call);
  }

  unassignRole(change: RoleWrite, call: CallContext): Promise<Member | undefined> {
    return this.#write('unassign', change, call);
  }

  /**
   * Sends the key only in the body. If a dead key were in the header, Roblox would refuse the request before reading
   * the body.
   */
  async checkCredential(call: CallContext): Promise<Credential> {
    const request = {
      operation: 'introspect',
      gate: this.#gates.introspect,
      method: 'POST',
      path: '/api-keys/v1/introspect',
      body: { apiKey: this.#apiKey },
      isAnonymous: true,
      schema: 'ApiKey',
      parse: (json: unknown) => parseCredential(json, this.#groupId),
    } as const;
    return this.#openCloud.request(request, call).catch((error): Credential => {
      // Roblox refused the introspection request itself, which proves nothing about the key.
      if (error instanceof ForbiddenRead || isRankdError(error, 'platform_rejected')) return { state: 'unreported' };
      if (error instanceof RefusedKey) return { state: 'invalid', refusal: error.refusal };
      throw error;
    });
  }

  pace(): Pace[] {
    return Object.entries(this.#gates).map(([operation, gate]) => ({ operation, ...gate.pace() }));
  }

  reachability(): Reachability {
    return this.#reach.state();
  }

  surprises(): Surprise[] {
    return this.#surprises.list();
  }

  /**
   * Rejects all waiting calls. Calls in flight can continue until their deadlines; idle connections do not keep the
   * process alive.
   */
  async close(): Promise<void> {
    await Promise.all(Object.values(this.#gates).map((gate) => gate.end()));
  }

  async #write(operation: WriteKind, { userId, roleId }: RoleWrite, call: CallContext): Promise<Member | undefined> {
    const gate = this.#gates[operation];
    const request = {
      operation,
      gate,
      slot: call.reservation instanceof WriteReservation ? call.reservation.take(gate) : undefined,
      method: 'POST',
      path: `/cloud/v2/groups/${this.#groupId}/memberships/${userId}:${operation}Role`,
      body: { role: `groups/${this.#groupId}/roles/${roleId}` },
      isWrite: true,
      onLocked: () => this.#writeSpacing.noteLock(),
      schema: 'GroupMembership',
      parse: (json: unknown) => memberShown(json, userId),
    } as const;
    try {
      return await this.#writeSpacing.withSpacing(userId, call, () => this.#openCloud.request(request, call));
    } catch (error) {
      if (error instanceof BaseRoleError) await this.#baseRole.remember(roleId);
      throw error;
    }
  }

  #get<T>({ path, ...read }: Read<T>, call: CallContext): Promise<T> {
    const request = { ...read, gate: this.#gates[read.operation], path: `/cloud/v2/groups/${this.#groupId}${path}` };
    return this.#openCloud.request({ ...request, method: 'GET' }, call);
  }

  /**
   * Sends the same parameters with every page, because Open Cloud rejects a page token if any other parameter has
   * changed.
   */
  #pages<T>({ path, ...rest }: Read<Page<T>>, call: CallContext): AsyncGenerator<Page<T>> {
    return readPages((cursor) => this.#get({ ...rest, path: `${path}${at('pageToken', cursor)}` }, call));
  }

  /**
   * Returns each role once, even if a role moves to another page during the read. Throws if the list is empty, because
   * every group has roles.
   */
  async #listRoles(call: CallContext): Promise<ListedRole[]> {
    const roles = new Map<number, ListedRole>();
    for await (const { items } of this.#pages({ ...rolePage, path: '/roles?maxPageSize=20' }, call)) {
      const before = roles.size;
      for (const role of items) roles.set(role.id, role);
      if (roles.size === before && items.length > 0) break; // the pages repeat
    }
    if (roles.size === 0) throw unavailable('the list of roles is empty');
    return [...roles.values()];
  }

  #readPublicList(call: CallContext): Promise<number | undefined> {
    const request = {
      operation: 'publicRoles',
      gate: this.#gates.publicRoles,
      method: 'GET',
      path: `/v1/groups/${this.#groupId}/roles`,
      isTriedOnce: true,
      schema: 'PublicRoleList',
      parse: parseBaseRoleId,
    } as const;
    const deadlineAt = Math.min(call.deadlineAt, this.#clock.monotonic() + this.#publicRolesTimeoutMs);
    return this.#legacy.request(request, { ...call, deadlineAt });
  }

  #askForNames(usernames: string[], call: CallContext): Promise<ReturnType<typeof parseNamedUsers>> {
    const request = {
      gate: this.#gates.userNames,
      method: 'POST',
      path: '/v1/usernames/users',
      body: { usernames, excludeBannedUsers: false },
      operation: 'userNames',
      schema: 'NamedUserList',
      parse: parseNamedUsers,
    } as const;
    return this.#users.request(request, call);
  }

  async #listMembersWith(roleId: number, call: CallContext): Promise<Membership[]> {
    const path = `/memberships?maxPageSize=10&filter=${this.#holdersOf(roleId)}`;
    return (await this.#get({ ...membershipPage, path }, call)).items;
  }

  #holdersOf(roleId: number): string {
    return encodeURIComponent(`role == 'groups/${this.#groupId}/roles/${roleId}'`);
  }
}

interface Read<T> {
  operation: Operation;
  /** Relative to the group's URL. */
  path: string;
  schema: SchemaName;
  parse(json: unknown): T;
}

const rolePage = { operation: 'roles', schema: 'ListGroupRolesResponse', parse: parseRolePage } as const;
const membershipPage = {
  operation: 'memberships',
  schema: 'ListGroupMembershipsResponse',
  parse: parseMembershipPage,
} as const;

function at(parameter: string, cursor: string | undefined): string {
  return cursor === undefined ? '' : `&${parameter}=${encodeURIComponent(cursor)}`;
}

/**
 * Returns the member from the response to a write, or `undefined` if the response contains no member or a different
 * one. Never throws, because the write has already succeeded.
 */
function memberShown(json: unknown, userId: number): Member | undefined {
  try {
    const member = memberOf(parseMembership(json));
    return member.userId === userId ? member : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the error for a failed name lookup. It never blames the key, which lookups do not use, and it suggests
 * sending the user id.
 */
function namesUnavailable(cause: unknown): RankdError {
  if (isRankdError(cause, 'platform_credential')) return loginRequired(cause);
  const { code, message, hint, connection, retryAfterMs = 5_000 } = asRankdError(cause);
  if (code === 'platform_rejected')
    return new RankdError(code, `${message} Send the user id instead of the name.`, {
      ...{ cause, hint: `check platform.users_base_url; if it is right, ${useIdHint}` },
    });
  return new RankdError(
    code === 'platform_busy' ? code : 'platform_unavailable',
    connection === undefined
      ? "Roblox's user names can't be looked up at the moment. Send the user id, or try again later."
      : `${message} Send the user id instead of the name, or try again later.`,
    { cause, retryAfterMs, connection, hint: connection === undefined ? useIdHint : hint },
  );
}

const useIdHint = 'give the user id, the number in the address of the profile page';

/**
 * Returns the error for a lookup that Roblox refuses without a login, as it announced in April 2026 (devforum 4579220).
 * Retrying does not help.
 */
function loginRequired(cause: RankdError): RankdError {
  const message = 'Roblox no longer looks up user names without a login. Send the user id.';
  return new RankdError('platform_rejected', message, { cause, hint: useIdHint });
}

function placesUnlisted(universeId: number, cause: unknown): unknown {
  if (isRankdError(cause, 'platform_credential')) {
    const message = `Roblox lists the places of experience ${universeId} only to its creators, and not to Open Cloud keys.`;
    return new RankdError('platform_rejected', message, {
      ...{ cause, hint: 'open each page under Places on the Creator Dashboard, and run rankd whitelist add ADDRESS…' },
    });
  }
  if (!isRankdError(cause, 'platform_rejected')) return cause;
  return new RankdError('platform_rejected', `Roblox lists no places for experience ${universeId}.`, {
    ...{ cause, hint: 'give the number after /experiences/ in the address of its page on the Creator Dashboard' },
  });
}

/** Throws if the response is about a different user, because it then proves nothing about the requested one. */
function sameUser(member: Member, userId: number): Member {
  if (member.userId === userId) return member;
  throw new RankdError('platform_rejected', `Roblox returned user ${member.userId} instead of user ${userId}.`);
}
