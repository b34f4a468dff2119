import { abortable } from '../../base/clock.ts';
import type { CallContext, Clock } from '../../ports/index.ts';
import { withShare } from '../../ports/platform.ts';
import type { ListedRole, Membership } from './resources.ts';

/** Persists the id of the group's base role. */
export interface BaseRoleMemory {
  find(): Promise<number | undefined>;
  store(roleId: number): Promise<void>;
}

/** The reads that can reveal the base role. Both reject if Roblox does not respond. */
export interface BaseRoleSources {
  /** Returns the id of the role that the public role list marks as base, or `undefined` if it marks none. */
  publicList(call: CallContext): Promise<number | undefined>;
  membersWith(roleId: number, call: CallContext): Promise<Membership[]>;
}

/** The pause after a failed attempt to find the base role. */
const restMs = 30_000;
/**
 * The share of a call's remaining time allowed for the public list, so that enough is left for reading members instead.
 */
const publicListShare = 0.25;

/**
 * Finds the group's base role. Open Cloud's role list does not mark it, and its rank does not identify it, because most
 * groups also have a custom role with rank 1 (see `RankOne`). The id is found once and stored, because it never changes
 * while the group exists.
 */
export class BaseRole {
  readonly #clock: Clock;
  readonly #memory: BaseRoleMemory;
  readonly #sources: BaseRoleSources;
  #id: number | undefined;
  /** The id that a membership revealed, used if the public list does not reveal the base role. */
  #shown: number | undefined;
  /** The base role's id, if the group's role list omits that role. */
  #omitted: number | undefined;
  #asking: Promise<number | undefined> | undefined;
  /** The next attempt to find the base role starts no earlier than this, on `Clock.monotonic()`. */
  #restsUntil = 0;

  constructor({ clock, memory, sources }: { clock: Clock; memory: BaseRoleMemory; sources: BaseRoleSources }) {
    this.#clock = clock;
    this.#memory = memory;
    this.#sources = sources;
  }

  /**
   * Resolves with the base role's id, even if the list omits the role, or with all candidates (the roles with rank 1)
   * if Roblox does not reveal the base role. Asks Roblox only if the stored id is missing or unlisted, and there is not
   * exactly one candidate.
   */
  async among(listed: ListedRole[], call: CallContext): Promise<number[]> {
    this.#id ??= await this.#memory.find().catch(() => undefined); // store failures are reported elsewhere
    const known = this.#id;
    const isListed = (id: number) => listed.some((role) => role.id === id);
    if (known !== undefined && (known === this.#omitted || isListed(known))) return [known];
    const candidates = listed.filter(({ rank }) => rank === 1).map(({ id }) => id);
    const [only, ...others] = candidates;
    if (only !== undefined && others.length === 0) {
      await this.remember(only);
      return candidates;
    }
    const found = await this.#ask(candidates, call);
    if (found !== undefined && !isListed(found)) this.#omitted = found;
    return found === undefined ? candidates : [found];
  }

  async remember(id: number): Promise<void> {
    this.#id = id;
    await this.#memory.store(id).catch(() => undefined); // if storing the id fails, it is found again after a restart
  }

  /**
   * Learns the base role from a member without other roles: `roles` is empty, and `role` names the base role. Source:
   * GroupService.GetRolesInGroupAsync, and observed live.
   */
  noteMembership({ roles, role }: Membership): void {
    if (roles?.length === 0) this.#shown = role;
  }

  #ask(candidates: number[], call: CallContext): Promise<number | undefined> {
    this.#asking ??= this.#determine(candidates, call).finally(() => {
      this.#asking = undefined;
    });
    return abortable(this.#asking, call.signal).catch(() => undefined);
  }

  async #determine(candidates: number[], call: CallContext): Promise<number | undefined> {
    const rests = this.#clock.monotonic() < this.#restsUntil;
    const found =
      (rests ? undefined : await this.#askPublicList(call)) ??
      (candidates.length === 0 ? this.#shown : candidates.find((id) => id === this.#shown)) ??
      (rests ? undefined : await this.#askMembers(candidates, call));
    if (found !== undefined) await this.remember(found);
    else if (!rests) this.#restsUntil = this.#clock.monotonic() + restMs;
    return found;
  }

  #askPublicList(call: CallContext): Promise<number | undefined> {
    const share = withShare(call, { clock: this.#clock, share: publicListShare });
    return this.#sources.publicList(share).catch(() => undefined);
  }

  /**
   * Reads some members of each candidate. The base role is the one candidate that its own members' role lists omit or,
   * if Roblox lists the base role like any other, the one candidate in the role lists of all these members.
   */
  async #askMembers(candidates: number[], call: CallContext): Promise<number | undefined> {
    const holders = new Map<number, Membership[]>();
    for (const id of candidates) holders.set(id, await this.#sources.membersWith(id, call).catch(() => []));
    const all = [...holders.values()].flat();
    const countListing = (id: number, members: Membership[]) =>
      members.filter(({ roles }) => roles?.includes(id)).length;
    const isLeftOut = ([id, members]: [number, Membership[]]) =>
      members.length > 0 && members.every(({ roles }) => roles?.includes(id) === false);
    const implied = [...holders].filter(isLeftOut).map(([id]) => id);
    const areListed = [...holders].every(([id, own]) => own.length > 0 && countListing(id, own) === own.length);
    const found = areListed ? candidates.filter((id) => countListing(id, all) === all.length) : implied;
    return found.length === 1 ? found[0] : undefined;
  }
}
