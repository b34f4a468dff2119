import { isRankdError, RankdError } from '../base/errors.ts';
import type { Credential, Group, Member, Role } from '../core/model.ts';
import { withShare } from '../ports/call-context.ts';
import type { CallContext, Clock, Pace, Platform, Reservation, RoleWrite, WriteKind } from '../ports/index.ts';
import { UpstreamClient } from './upstream/client.ts';
import { type Gates, type Operation, openGates, WriteReservation } from './upstream/operations.ts';
import { unavailable } from './upstream/platform-error.ts';
import {
  type ListedRole,
  type Page,
  parseBaseRoleId,
  parseCredential,
  parseGroup,
  parseMembership,
  parseMembershipPage,
  parseRolePage,
} from './upstream/resources.ts';
import { needsFlag, withKinds } from './upstream/role-kinds.ts';
import type { UpstreamTuning } from './upstream/tuning.ts';

export interface OpenCloudOptions {
  groupId: number;
  apiKey: string;
  /** Open Cloud, e.g. `https://apis.roblox.com`: the only host that ever sees the key. */
  baseUrl: string;
  /** Where the public role list is, e.g. `https://groups.roblox.com`. */
  legacyBaseUrl: string;
  clock: Clock;
  fetch?: typeof globalThis.fetch;
  tuning?: Partial<OpenCloudTuning>;
}

export interface OpenCloudTuning extends UpstreamTuning {
  /** How long the role list waits for the public role list at most. */
  publicRolesTimeoutMs: number;
}

/** The share of a call's time that the public role list may take: most groups' roles can be told without it. */
const legacyShare = 0.25;
/** How long it is not asked again after it did not answer, so that only few calls wait for it. */
const legacyRestMs = 300_000;

/** A group has at most 40 roles, which is two pages. More pages than this are a fault. */
const maxPages = 50;

/** A group on Roblox, through Open Cloud v2 and an API key that acts as the account that owns it. */
export class OpenCloudPlatform implements Platform {
  /** Reads have been seen to lag behind a write by up to 6.75 s. */
  readonly readLagMs = 8_000;
  readonly #groupId: number;
  readonly #apiKey: string;
  readonly #clock: Clock;
  readonly #publicRolesTimeoutMs: number;
  readonly #openCloud: UpstreamClient;
  readonly #legacy: UpstreamClient;
  readonly #gates: Gates;
  /** It never changes while the group exists, so it is read once. */
  #flaggedBaseId: number | undefined;
  /** Until then (on `Clock.monotonic()`) the public list is read only if the role list can't do without it. */
  #legacyRestsUntil = 0;

  /** Throws `config_invalid` if `apiKey` can't be a key. */
  constructor({
    groupId,
    apiKey,
    baseUrl,
    legacyBaseUrl,
    clock,
    fetch = globalThis.fetch,
    tuning = {},
  }: OpenCloudOptions) {
    this.#groupId = groupId;
    this.#apiKey = apiKey;
    this.#clock = clock;
    this.#publicRolesTimeoutMs = tuning.publicRolesTimeoutMs ?? 4_000;
    this.#openCloud = new UpstreamClient({ baseUrl, apiKey, clock, fetch, tuning });
    this.#legacy = new UpstreamClient({ baseUrl: legacyBaseUrl, clock, fetch, tuning });
    this.#gates = openGates(clock);
  }

  group(call: CallContext): Promise<Group> {
    return this.#get({ operation: 'group', path: '', parse: parseGroup }, call);
  }

  async roles(call: CallContext): Promise<Role[]> {
    const listed = await this.#listRoles(call);
    this.#flaggedBaseId ??= needsFlag(listed) ? await this.#askFlaggedBase(call) : await this.#tryFlaggedBase(call);
    return withKinds(listed, this.#flaggedBaseId);
  }

  async getMember(userId: number, call: CallContext): Promise<Member | undefined> {
    const path = `/memberships?filter=${encodeURIComponent(`user == 'users/${userId}'`)}`;
    for await (const [member] of this.#pages({ operation: 'memberships', path, parse: parseMembershipPage }, call)) {
      if (member !== undefined) return sameUser(member, userId, 'platform_rejected');
    }
    return undefined;
  }

  async reserve(kinds: WriteKind[], { lane, deadlineAt }: CallContext): Promise<Reservation> {
    return new WriteReservation(this.#gates, kinds, { lane, deadlineAt: deadlineAt - this.#openCloud.shortestTryMs });
  }

  assignRole(change: RoleWrite, call: CallContext): Promise<Member> {
    return this.#write('assign', change, call);
  }

  unassignRole(change: RoleWrite, call: CallContext): Promise<Member> {
    return this.#write('unassign', change, call);
  }

  /** Sends the key in the body only: with a dead key in the header, Roblox would refuse the request before looking at the body. */
  async checkCredential(call: CallContext): Promise<Credential> {
    const request = {
      gate: this.#gates.introspect,
      method: 'POST',
      path: '/api-keys/v1/introspect',
      body: { apiKey: this.#apiKey },
      isAnonymous: true,
      parse: (json: unknown) => parseCredential(json, this.#groupId),
    } as const;
    return this.#openCloud.request(request, call).catch((error): Credential => {
      if (isRankdError(error, 'platform_credential')) return { state: 'invalid' };
      throw error;
    });
  }

  pace(): Pace[] {
    return Object.entries(this.#gates).map(([operation, gate]) => ({ operation, ...gate.pace() }));
  }

  /** There is nothing to release: each call ends by its own deadline, and idle connections don't keep the process alive. */
  async close(): Promise<void> {}

  async #write(operation: WriteKind, { userId, roleId }: RoleWrite, call: CallContext): Promise<Member> {
    const gate = this.#gates[operation];
    const request = {
      gate,
      slot: call.reservation instanceof WriteReservation ? call.reservation.take(gate) : undefined,
      method: 'POST',
      path: `/cloud/v2/groups/${this.#groupId}/memberships/${userId}:${operation}Role`,
      body: { role: `groups/${this.#groupId}/roles/${roleId}` },
      isWrite: true,
      parse: parseMembership,
    } as const;
    return sameUser(await this.#openCloud.request(request, call), userId, 'outcome_unknown');
  }

  #get<T>({ operation, path, parse }: Read<T>, call: CallContext): Promise<T> {
    const request = { gate: this.#gates[operation], path: `/cloud/v2/groups/${this.#groupId}${path}`, parse };
    return this.#openCloud.request({ ...request, method: 'GET' }, call);
  }

  /** All pages of a list. The other parameters must be the same for every page, or Open Cloud refuses the token. */
  async *#pages<T>({ path, ...rest }: Read<Page<T>>, call: CallContext): AsyncGenerator<T[]> {
    let pagePath = path;
    for (let page = 0; page < maxPages; page += 1) {
      const { items, nextPageToken } = await this.#get({ ...rest, path: pagePath }, call);
      yield items;
      if (nextPageToken === undefined) return;
      pagePath = `${path}&pageToken=${encodeURIComponent(nextPageToken)}`;
    }
    throw new RankdError(
      'platform_rejected',
      `A list on Roblox does not end after ${maxPages} pages. Try again later.`,
    );
  }

  /** A role that moves while the pages are read can come twice. A group without roles does not exist. */
  async #listRoles(call: CallContext): Promise<ListedRole[]> {
    const roles = new Map<number, ListedRole>();
    for await (const page of this.#pages(
      { operation: 'roles', path: '/roles?maxPageSize=20', parse: parseRolePage },
      call,
    )) {
      for (const role of page) roles.set(role.id, role);
    }
    if (roles.size === 0) throw unavailable('the list of roles is empty');
    return [...roles.values()];
  }

  /** For a role list that can do without: takes a share of the time left, and none for a while after it got no answer. */
  async #tryFlaggedBase(call: CallContext): Promise<number | undefined> {
    if (this.#clock.monotonic() < this.#legacyRestsUntil) return undefined;
    const flaggedBaseId = await this.#askFlaggedBase(withShare(call, { clock: this.#clock, share: legacyShare }));
    if (flaggedBaseId === undefined) this.#legacyRestsUntil = this.#clock.monotonic() + legacyRestMs;
    return flaggedBaseId;
  }

  /** The id of the role that the public list marks as base; `undefined` if the list does not answer. */
  #askFlaggedBase(call: CallContext): Promise<number | undefined> {
    const deadlineAt = Math.min(call.deadlineAt, this.#clock.monotonic() + this.#publicRolesTimeoutMs);
    const path = `/v1/groups/${this.#groupId}/roles`;
    return this.#legacy
      .request({ gate: this.#gates.publicRoles, method: 'GET', path, parse: parseBaseRoleId }, { ...call, deadlineAt })
      .catch(() => undefined);
  }
}

interface Read<T> {
  operation: Operation;
  /** Below the group's path. */
  path: string;
  parse(json: unknown): T;
}

/** An answer about somebody else proves nothing about the member asked for. */
function sameUser(member: Member, userId: number, code: 'platform_rejected' | 'outcome_unknown'): Member {
  if (member.userId === userId) return member;
  throw new RankdError(code, `Roblox answered about user ${member.userId} where user ${userId} was asked for.`);
}
