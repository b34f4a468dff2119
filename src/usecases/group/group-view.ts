import { isRankdError, RankdError } from '../../base/errors.ts';
import { actingAccount } from '../../core/acting-account.ts';
import { refusalOfCredential } from '../../core/credential.ts';
import type { ActingAccount, Group, Member, Role } from '../../core/model.ts';
import { heldRoles, isRank, isUnlisted, type RankOne, type RoleName } from '../../core/role-scheme.ts';
import {
  type GroupScheme,
  judgeMeanings,
  keyEntries,
  ladderOf,
  type ResolvedMeanings,
  type RoleEntry,
  type RoleMeaning,
  type RoleMisfit,
  resolveRoles,
} from '../../core/role-settings.ts';
import { resolveTarget } from '../../core/target.ts';
import type { CallContext, Clock, Platform, Store } from '../../ports/index.ts';
import { withShare } from '../../ports/platform.ts';
import { CachedRead } from './cached-read.ts';

const rolesLifeMs = 30_000;
/** The roles must be at most this old when a member is read for a change, and again when the change begins. */
const confirmedMs = 2_000;
const actingLifeMs = 60_000;
const groupLifeMs = 60_000;
/**
 * A cached value must be this old before it is re-read early, so that requests for unknown ranks do not each cause a
 * read of the roles.
 */
const refreshSpacingMs = 5_000;
/** For this long after a failed read, `requireReadable` rethrows its error instead of reading again. */
const failureLifeMs = 5_000;
/** The share of a caller's remaining time that each optional read for the acting account can take. */
const checkShare = 0.25;
/** A check that fails with less time than this proves nothing about the platform. */
const minCheckMs = 250;

export interface GroupViewOptions {
  /** Identifies this group among all groups that rankd can be configured for. */
  title: string;
  platform: Platform;
  clock: Clock;
  store: Pick<Store, 'findMeanings' | 'updateMeanings' | 'listKeys'>;
  entries: readonly RoleEntry[];
  rankOne: RankOne;
  /**
   * If true, the view stores the meanings of newly resolved entries immediately; otherwise, only once `takeEffect` is
   * called.
   */
  isInForce: boolean;
  /** Called with the roles after each read. Its errors are ignored. */
  onRoles?: (roles: Role[]) => Promise<void>;
}

/** A short-lived cache of the group, its roles and the acting account. It never caches the roles of other members. */
export class GroupView {
  readonly title: string;
  readonly #options: GroupViewOptions;
  readonly #scheme: CachedRead<GroupScheme>;
  readonly #acting: CachedRead<KnownActing>;
  readonly #group: CachedRead<Group>;
  /** Roles that were read individually, keyed by id. */
  readonly #roleCaches = new Map<number, CachedRead<Omit<Role, 'kind'> | undefined>>();
  /**
   * The time (on `Clock.monotonic()`) at which each role missing from the list was last needed, keyed by id. Recently
   * needed ones are re-read together with the list.
   */
  readonly #unlistedAt = new Map<number, number>();
  #name: string | undefined;
  #misfits: readonly RoleMisfit[] | undefined;
  #isInForce: boolean;
  #isRenewed: ResolvedMeanings['isRenewed'] = () => false;
  /** Resolved entries whose meanings are not stored yet. */
  #unstored: Pick<ResolvedMeanings, 'entries' | 'newMeanings'> | undefined;

  constructor(options: GroupViewOptions) {
    const { title, clock } = options;
    this.title = title;
    this.#options = options;
    this.#isInForce = options.isInForce;
    this.#scheme = new CachedRead(clock, rolesLifeMs, (call) => this.#readScheme(call));
    this.#group = new CachedRead(clock, groupLifeMs, (call) => this.#readGroup(call));
    this.#acting = new CachedRead(clock, actingLifeMs, (call) => this.#readActing(call));
  }

  /** The group's name as of the last read; `undefined` before the first read. */
  get name(): string | undefined {
    return this.#name;
  }

  get isReadable(): boolean {
    return !this.#scheme.hasFailed;
  }

  get entries(): readonly RoleEntry[] {
    return this.#options.entries;
  }

  /** The misfits as of the last read of the roles; `undefined` before the first read. */
  get misfits(): readonly RoleMisfit[] | undefined {
    return this.#misfits;
  }

  /**
   * Ignores the stored meanings of entries for which `isRenewed` returns true. Must be called before the first read.
   */
  relearn(isRenewed: ResolvedMeanings['isRenewed']): void {
    this.#isRenewed = isRenewed;
  }

  /**
   * Starts storing the meanings of newly resolved entries. If the roles have been read and `prunes` is true, also
   * deletes the meanings of removed entries.
   */
  async takeEffect({ prunes }: { prunes: boolean }): Promise<void> {
    this.#isInForce = true;
    if (this.#unstored !== undefined) await this.#store({ ...this.#unstored, prunes });
  }

  scheme(call: CallContext): Promise<GroupScheme> {
    return this.#scheme.get(call);
  }

  about(call: CallContext): Promise<Group> {
    return this.#group.get(call);
  }

  /**
   * Returns the group owner's id; `undefined` if there is no owner or the read fails. Throws only
   * `platform_credential`.
   */
  async owner(call: CallContext): Promise<number | undefined> {
    return (await this.#group.get(call, { maxAgeMs: refreshSpacingMs }).catch(unlessCredential))?.ownerId;
  }

  async #readGroup(call: CallContext): Promise<Group> {
    const group = await this.#options.platform.group(call);
    this.#name = group.name;
    return group;
  }

  async target(asked: RoleName, call: CallContext): Promise<{ scheme: GroupScheme; target: Role }> {
    const find = (acting?: ActingAccount) =>
      this.judged((scheme) => ({ scheme, target: resolveTarget(scheme, asked, acting) }), call);
    return find().catch(async (error) => {
      const known = await this.#acting.get(call).catch(() => undefined);
      if (known?.acting === undefined) throw error;
      return find(known.acting);
    });
  }

  /**
   * Returns the result of `judge`. If it throws RankdError, calls it again with roles that are at most a few seconds
   * old.
   */
  async judged<T>(judge: (scheme: GroupScheme) => T, call: CallContext): Promise<T> {
    const known = await this.scheme(call);
    try {
      return judge(known);
    } catch (error) {
      if (!isRankdError(error)) throw error;
      return judge(await this.#scheme.get(call, { maxAgeMs: refreshSpacingMs }));
    }
  }

  /**
   * Returns the scheme, including every role that this member holds. A role that is missing from the list is either
   * new, so the list is re-read, or private, so the role is read individually. Roblox may report that a private role
   * does not exist.
   */
  async schemeFor({ roleIds }: Member, call: CallContext): Promise<GroupScheme> {
    const known = await this.scheme(call);
    const unlisted = roleIds.filter((id) => isUnlisted(known.roles, id));
    if (unlisted.length === 0) return known;
    const isPrivate = unlisted.every((id) => this.#roleCache(id).isFresh());
    const scheme = isPrivate ? known : await this.#scheme.get(call, { maxAgeMs: 0 });
    const stillUnlisted = roleIds.filter((id) => isUnlisted(scheme.roles, id));
    const found = await this.#readEach(stillUnlisted, call);
    const added = found.flatMap((role): Role[] => (role === undefined ? [] : [{ ...role, kind: 'private' }]));
    return { ...scheme, roles: [...scheme.roles, ...added].sort((one, other) => one.rank - other.rank) };
  }

  /**
   * Ensures that the roles are current. If it runs while the member is being read, it adds no delay. Reads the list,
   * and separately the role to give. If the two contradict each other, re-reads both, and throws
   * `platform_unavailable` if they still do. Returns false if the role differs from `target`: the caller must replan.
   */
  async confirm(target: Role | undefined, call: CallContext): Promise<boolean> {
    for (const maxAgeMs of [confirmedMs, 0]) {
      const [alone, { roles }] = await Promise.all([
        target && this.#roleCache(target.id).get(call, { maxAgeMs }),
        this.#scheme.get(call, { maxAgeMs }),
      ]);
      const listed = roles.find(({ id }) => id === target?.id);
      if (target === undefined || alone === undefined || listed === undefined) return true;
      if (isEquivalent(listed, alone)) return isEquivalent(listed, target);
    }
    const message = 'Roblox reports two versions of this role, probably because it was just changed. Try again.';
    throw new RankdError('platform_unavailable', message, { retryAfterMs: refreshSpacingMs });
  }

  /** True if the target and the ranks of `known` have not changed. Re-reads them first, as `confirm` does. */
  async isCurrent(known: GroupScheme, target: Role | undefined, call: CallContext): Promise<boolean> {
    if (!(await this.confirm(target, call))) return false;
    const { roles } = await this.#scheme.get(call, { maxAgeMs: confirmedMs });
    return ranksIn(roles) === ranksIn(known.roles);
  }

  /**
   * Re-reads the roles, the acting account or both, whichever were not read within the last few seconds. Returns false,
   * without reading anything, if both were.
   */
  async renew(call: CallContext): Promise<boolean> {
    const isRecent = this.#scheme.isFresh(refreshSpacingMs) && this.#acting.isFresh(refreshSpacingMs);
    if (isRecent) return false;
    this.#roleCaches.clear();
    await this.#scheme.get(call, { maxAgeMs: refreshSpacingMs });
    await this.#acting.get(call, { maxAgeMs: refreshSpacingMs });
    return true;
  }

  /** Reads roles that are missing from the list. Reuses those that were read less than `confirmedMs` ago. */
  #readEach(ids: readonly number[], call: CallContext): Promise<Array<Omit<Role, 'kind'> | undefined>> {
    for (const id of ids) this.#unlistedAt.set(id, this.#options.clock.monotonic());
    return Promise.all(ids.map((id) => this.#roleCache(id).get(call, { maxAgeMs: confirmedMs })));
  }

  #roleCache(id: number): CachedRead<Omit<Role, 'kind'> | undefined> {
    const { clock, platform } = this.#options;
    const known = this.#roleCaches.get(id) ?? new CachedRead(clock, rolesLifeMs, (call) => platform.role(id, call));
    this.#roleCaches.set(id, known);
    return known;
  }

  /**
   * Returns the acting account, or `undefined` if the platform does not report it. Re-reads it if the last read was
   * incomplete or showed that the account is not a member. Throws if a required read fails, e.g. `platform_credential`
   * if the platform refuses the credential.
   */
  async acting(call: CallContext): Promise<ActingAccount | undefined> {
    const known = await this.#acting.get(call);
    if (known.isConclusive) return known.acting;
    const again = this.#acting.get(call, { maxAgeMs: refreshSpacingMs });
    if (known.acting?.rank === 0) return (await again).acting;
    return ((await again.catch(unlessCredential)) ?? known).acting;
  }

  /**
   * Throws if the roles or the acting account can't be read. Caches the error for a few seconds, so that repeated calls
   * cause few reads.
   */
  async requireReadable(call: CallContext): Promise<void> {
    await Promise.all([this.#scheme.get(call, { failureLifeMs }), this.#acting.get(call, { failureLifeMs })]);
  }

  async #readScheme(call: CallContext): Promise<GroupScheme> {
    const { platform, store, clock, rankOne, onRoles } = this.#options;
    const [roles] = await Promise.all([platform.roles(call), this.#readUnlisted(call)]);
    const group = { roles, rankOne };
    await onRoles?.(group.roles).catch(() => undefined);
    const [stored, keys] = await Promise.all([
      store.findMeanings(this.title),
      store.listKeys({ acceptedAt: clock.now() }),
    ]);
    const entries = [...this.entries, ...keyEntries(keys)];
    const meanings = stored.filter((one) => !this.#isRenewed(one));
    const unlisted = [...new Set(idsIn(entries, meanings))].filter((id) => isUnlisted(group.roles, id));
    const found = await this.#readEach(unlisted, call);
    const hidden = found.flatMap((role): Role[] => (role === undefined ? [] : [{ ...role, kind: 'private' }]));
    const all = { ...group, roles: [...group.roles, ...hidden].sort((one, other) => one.rank - other.rank) };
    const { newMeanings, ...resolved } = resolveRoles(all, entries, meanings);
    this.#misfits = resolved.misfits;
    if (!this.#isInForce) this.#unstored = { entries, newMeanings };
    else if (newMeanings.length > 0) await this.#store({ entries, newMeanings, prunes: false });
    return { ...group, ...resolved, ladder: ladderOf(entries, resolved) };
  }

  /**
   * Re-reads the recently needed roles that are missing from the list, so that later callers do not have to wait for
   * them.
   */
  async #readUnlisted(call: CallContext): Promise<void> {
    const since = this.#options.clock.monotonic() - rolesLifeMs;
    const recent = [...this.#unlistedAt].filter(([, at]) => at >= since).map(([id]) => id);
    await Promise.all(
      recent.map((id) =>
        this.#roleCache(id)
          .get(call, { maxAgeMs: 0 })
          .catch(() => undefined),
      ),
    );
  }

  async #store(resolved: Pick<ResolvedMeanings, 'entries' | 'newMeanings' | 'prunes'>): Promise<void> {
    const { store, clock } = this.#options;
    const judge = judgeMeanings({ ...resolved, isRenewed: this.#isRenewed }, { by: 'daemon', at: clock.now() });
    await store.updateMeanings(this.title, judge);
    this.#unstored = undefined;
    this.#isRenewed = () => false;
  }

  /**
   * Uses a lane of its own instead of the caller's, which may have a long queue, because all callers need the result.
   */
  async #readActing(caller: CallContext): Promise<KnownActing> {
    const { platform, clock } = this.#options;
    const call = { ...caller, lane: 'acting account' };
    const limited = () => withShare(call, { clock, share: checkShare });
    const check = limited();
    const isRushed = check.deadlineAt - clock.monotonic() < minCheckMs;
    const credential = await platform.checkCredential(check).catch((error) => {
      if (isRushed) throw error; // the cache must not store the result of a check that had too little time
      return unlessCredential(error);
    });
    if (credential === undefined) return { acting: undefined, isConclusive: false };
    const refusal = refusalOfCredential(credential);
    if (refusal !== undefined) throw refusal;
    if (credential.userId === undefined) return { acting: undefined, isConclusive: true };
    const [group, listed, member] = await Promise.all([
      // optional: the role with rank 255 also identifies the owner, and a dead key can't read the member either
      this.#readGroup(limited()).catch(() => undefined),
      this.scheme(call),
      platform.getMember(credential.userId, call),
    ]);
    // The account's highest role can be private. If it can't be read, the platform decides what the account can change.
    const scheme = member === undefined ? listed : await this.schemeFor(member, call).catch(unlessCredential);
    if (scheme === undefined) return { acting: undefined, isConclusive: false };
    const held = member === undefined ? [] : heldRoles(scheme.roles, member);
    const acting = actingAccount({ userId: credential.userId, ownerId: group?.ownerId }, held);
    return { acting, isConclusive: group !== undefined && acting.rank > 0 };
  }
}

interface KnownActing {
  acting: ActingAccount | undefined;
  /** False if something could not be read, or if the account is not a member but may join. */
  isConclusive: boolean;
}

function isEquivalent(one: Pick<Role, 'rank' | 'powers'>, other: Pick<Role, 'rank' | 'powers'>): boolean {
  if (one.rank !== other.rank) return false;
  return one.powers === undefined || other.powers === undefined || one.powers.join() === other.powers.join();
}

/** Omits private roles, because `schemeFor` adds those of a member. */
function ranksIn(roles: readonly Role[]): string {
  return roles.flatMap(({ id, rank, kind }) => (kind === 'private' ? [] : `${id}:${rank}`)).join();
}

/** Returns the role ids that the settings name. They include private roles, which still protect their holders. */
function idsIn(entries: readonly RoleEntry[], meanings: readonly RoleMeaning[]): number[] {
  const ids = entries.flatMap(({ entry }) => (typeof entry === 'number' && !isRank(entry) ? entry : []));
  return [...ids, ...meanings.flatMap(({ roles }) => roles.map(({ id }) => id))];
}

/**
 * Rethrows a refused credential, and ignores other errors: the platform itself refuses changes that the account is not
 * allowed to make.
 */
function unlessCredential(error: unknown): undefined {
  if (isRankdError(error, 'platform_credential')) throw error;
}
