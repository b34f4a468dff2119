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
  type RoleEntry,
  type RoleMeaning,
  type RoleMisfit,
  resolveRoles,
  type TakenUp,
} from '../../core/role-settings.ts';
import { resolveTarget } from '../../core/target.ts';
import type { CallContext, Clock, Platform, Store } from '../../ports/index.ts';
import { withShare } from '../../ports/platform.ts';
import { Remembered } from './remembered.ts';

const rolesLifeMs = 30_000;
/** A change is judged by roles that were read at most this long before its member. */
const confirmedMs = 2_000;
const actingLifeMs = 60_000;
const aboutLifeMs = 60_000;
/** Callers with unknown ranks must not turn every request into a read of the role list. */
const refreshSpacingMs = 5_000;
/** For this long, a check does not repeat a failed read. */
const failureLifeMs = 5_000;
/** The share of a caller's time that the check may take: changes can be made without it. */
const checkShare = 0.25;
/** A failed check with less time than this proves nothing about the platform. */
const leastCheckMs = 250;

export interface GroupViewOptions {
  /** Identifies this group among all groups that rankd can be configured for. */
  title: string;
  platform: Platform;
  clock: Clock;
  store: Pick<Store, 'findMeanings' | 'updateMeanings' | 'listKeys'>;
  /** The entries of the configuration that name roles. */
  entries: readonly RoleEntry[];
  rankOne: RankOne;
  /**
   * True if this view stores the meaning of entries that are resolved for the first time. Otherwise, it does so after
   * `takeEffect`.
   */
  isInForce: boolean;
  /** Called with the roles after each read; its errors are ignored. */
  onRoles?: (roles: Role[]) => Promise<void>;
}

/** A short-lived cache of the group's roles and the acting account. It never caches memberships. */
export class GroupView {
  readonly title: string;
  readonly #options: GroupViewOptions;
  readonly #scheme: Remembered<GroupScheme>;
  readonly #acting: Remembered<KnownActing>;
  readonly #about: Remembered<Group>;
  /** By id: roles that were read individually. */
  readonly #singles = new Map<number, Remembered<Omit<Role, 'kind'> | undefined>>();
  /**
   * The time at which each role (id) that the list lacks was last held or named, on `Clock.monotonic()`. They are read
   * together with the list.
   */
  readonly #unlistedAt = new Map<number, number>();
  #name: string | undefined;
  #misfits: readonly RoleMisfit[] | undefined;
  #isInForce: boolean;
  #isRenewed: TakenUp['isRenewed'] = () => false;
  /** Resolved entries whose meaning is not stored yet. */
  #unstored: Pick<TakenUp, 'entries' | 'learned'> | undefined;

  constructor(options: GroupViewOptions) {
    const { title, clock } = options;
    this.title = title;
    this.#options = options;
    this.#isInForce = options.isInForce;
    this.#scheme = new Remembered(clock, rolesLifeMs, (call) => this.#readScheme(call));
    this.#about = new Remembered(clock, aboutLifeMs, (call) => this.#readGroup(call));
    this.#acting = new Remembered(clock, actingLifeMs, (call) => this.#readActing(call));
  }

  /** The group's name at the latest read; `undefined` before that. */
  get name(): string | undefined {
    return this.#name;
  }

  /** True if the last read of the roles succeeded, or none was made. */
  get isReadable(): boolean {
    return !this.#scheme.hasFailed;
  }

  /** The entries of the configuration that name roles. */
  get entries(): readonly RoleEntry[] {
    return this.#options.entries;
  }

  /** The misfits at the latest read of the roles; `undefined` before that. */
  get misfits(): readonly RoleMisfit[] | undefined {
    return this.#misfits;
  }

  /**
   * Must be called before the first read: entries for which `isRenewed` is true are resolved again, ignoring their
   * earlier meaning.
   */
  relearn(isRenewed: TakenUp['isRenewed']): void {
    this.#isRenewed = isRenewed;
  }

  /**
   * From now on, the meanings of newly resolved entries are stored. Deletes the meanings of removed entries, unless
   * other daemons may have them.
   */
  async takeEffect({ prunes }: { prunes: boolean }): Promise<void> {
    this.#isInForce = true;
    if (this.#unstored !== undefined) await this.#store({ ...this.#unstored, prunes });
  }

  /** The roles, the ladder, and the roles of all other settings. */
  scheme(call: CallContext): Promise<GroupScheme> {
    return this.#scheme.get(call);
  }

  /** The group itself. */
  about(call: CallContext): Promise<Group> {
    return this.#about.get(call);
  }

  /** The group's owner; `undefined` if there is none, or if it can't be read. */
  async owner(call: CallContext): Promise<number | undefined> {
    return (await this.#about.get(call, { maxAgeMs: refreshSpacingMs }).catch(unlessCredential))?.ownerId;
  }

  async #readGroup(call: CallContext): Promise<Group> {
    const group = await this.#options.platform.group(call);
    this.#name = group.name;
    return group;
  }

  /** The scheme and the requested role. */
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
   * The judge's result. No refusal comes from the cache alone: before it throws one, it reads the roles again unless
   * they are a few seconds old.
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
   * The scheme with every role that this member holds. A role that the list lacks was either just created, and a second
   * read of the list shows it; or it is private: then it is read individually, and joins the scheme as such. Roblox may
   * deny that it exists.
   */
  async schemeFor({ roleIds }: Member, call: CallContext): Promise<GroupScheme> {
    const known = await this.scheme(call);
    const unlisted = roleIds.filter((id) => isUnlisted(known.roles, id));
    if (unlisted.length === 0) return known;
    const isPrivate = unlisted.every((id) => this.#single(id).isFresh());
    const scheme = isPrivate ? known : await this.#scheme.get(call, { maxAgeMs: 0 });
    const still = roleIds.filter((id) => isUnlisted(scheme.roles, id));
    const found = await this.#unlisted(still, call);
    const added = found.flatMap((role): Role[] => (role === undefined ? [] : [{ ...role, kind: 'private' }]));
    return { ...scheme, roles: [...scheme.roles, ...added].sort((one, other) => one.rank - other.rank) };
  }

  /**
   * Ensures that a change is judged by the present roles rather than cached ones. Call it during the read of the
   * member, because it takes as long. The list shows the roles that the member may hold; the role to give, if it is
   * known, is also read individually. If the two differ, both are read again. Throws `platform_unavailable` if they
   * still do. Returns false if the role differs from the caller's: then plan again.
   */
  async confirm(target: Role | undefined, call: CallContext): Promise<boolean> {
    for (const maxAgeMs of [confirmedMs, 0]) {
      const [alone, { roles }] = await Promise.all([
        target && this.#single(target.id).get(call, { maxAgeMs }),
        this.#scheme.get(call, { maxAgeMs }),
      ]);
      const listed = roles.find(({ id }) => id === target?.id);
      if (target === undefined || alone === undefined || listed === undefined) return true;
      if (isAlike(listed, alone)) return isAlike(listed, target);
    }
    const message = 'Roblox reports two versions of this role, probably because it was just changed. Try again.';
    throw new RankdError('platform_unavailable', message, { retryAfterMs: refreshSpacingMs });
  }

  /** Reads the roles and the acting account again if either was read longer ago than a few seconds; false if not. */
  async renew(call: CallContext): Promise<boolean> {
    const isYoung = this.#scheme.isFresh(refreshSpacingMs) && this.#acting.isFresh(refreshSpacingMs);
    if (isYoung) return false;
    this.#singles.clear();
    await this.#scheme.get(call, { maxAgeMs: refreshSpacingMs });
    await this.#acting.get(call, { maxAgeMs: refreshSpacingMs });
    return true;
  }

  /** Roles that the list lacks, read individually: no older than a confirmed list. */
  #unlisted(ids: readonly number[], call: CallContext): Promise<Array<Omit<Role, 'kind'> | undefined>> {
    for (const id of ids) this.#unlistedAt.set(id, this.#options.clock.monotonic());
    return Promise.all(ids.map((id) => this.#single(id).get(call, { maxAgeMs: confirmedMs })));
  }

  /** One role, read individually. */
  #single(id: number): Remembered<Omit<Role, 'kind'> | undefined> {
    const { clock, platform } = this.#options;
    const known = this.#singles.get(id) ?? new Remembered(clock, rolesLifeMs, (call) => platform.role(id, call));
    this.#singles.set(id, known);
    return known;
  }

  /**
   * The acting account; `undefined` if the platform does not report it. Reads it again before it reports that the
   * account is not a member, and soon if something could not be read. Throws `platform_credential` if the platform
   * refuses the credential here, and the check's error if the caller had hardly any time left for it.
   */
  async acting(call: CallContext): Promise<ActingAccount | undefined> {
    const known = await this.#acting.get(call);
    if (known.isSure) return known.acting;
    const again = this.#acting.get(call, { maxAgeMs: refreshSpacingMs });
    if (known.acting?.rank === 0) return (await again).acting;
    return ((await again.catch(unlessCredential)) ?? known).acting;
  }

  /**
   * Resolves if roles and acting account can be read, or were read a short while ago. Throws the error, from the cache
   * for a while: repeated calls do not each cause a read of the platform.
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
    const found = await this.#unlisted(unlisted, call);
    const hidden = found.flatMap((role): Role[] => (role === undefined ? [] : [{ ...role, kind: 'private' }]));
    const all = { ...group, roles: [...group.roles, ...hidden].sort((one, other) => one.rank - other.rank) };
    const { learned, ...resolved } = resolveRoles(all, entries, meanings);
    this.#misfits = resolved.misfits;
    if (!this.#isInForce) this.#unstored = { entries, learned };
    else if (learned.length > 0) await this.#store({ entries, learned, prunes: false });
    return { ...group, ...resolved, ladder: ladderOf(entries, resolved) };
  }

  /**
   * Reads roles again that the list lacked a while ago, concurrently with the list, so later callers need not wait for
   * them.
   */
  async #readUnlisted(call: CallContext): Promise<void> {
    const since = this.#options.clock.monotonic() - rolesLifeMs;
    const recent = [...this.#unlistedAt].filter(([, at]) => at >= since).map(([id]) => id);
    await Promise.all(
      recent.map((id) =>
        this.#single(id)
          .get(call, { maxAgeMs: 0 })
          .catch(() => undefined),
      ),
    );
  }

  async #store(taken: Pick<TakenUp, 'entries' | 'learned' | 'prunes'>): Promise<void> {
    const { store, clock } = this.#options;
    const judge = judgeMeanings({ ...taken, isRenewed: this.#isRenewed }, { by: 'daemon', at: clock.now() });
    await store.updateMeanings(this.title, judge);
    this.#unstored = undefined;
    this.#isRenewed = () => false;
  }

  /** In a separate lane: all callers need it, and the lane of the caller that happens to read it may be long. */
  async #readActing(caller: CallContext): Promise<KnownActing> {
    const { platform, clock } = this.#options;
    const call = { ...caller, lane: 'acting account' };
    const soon = () => withShare(call, { clock, share: checkShare });
    const check = soon();
    const isRushed = check.deadlineAt - clock.monotonic() < leastCheckMs;
    const credential = await platform.checkCredential(check).catch((error) => {
      if (isRushed) throw error; // others must not rely on a read that had hardly any time left
      return unlessCredential(error);
    });
    if (credential === undefined) return { acting: undefined, isSure: false };
    const refusal = refusalOfCredential(credential);
    if (refusal !== undefined) throw refusal;
    if (credential.userId === undefined) return { acting: undefined, isSure: true };
    const [group, listed, member] = await Promise.all([
      // the role also shows if it is the owner; a dead key can't read the member either
      this.#readGroup(soon()).catch(() => undefined),
      this.scheme(call),
      platform.getMember(credential.userId, call),
    ]);
    // Its highest role can be private. While that can't be read, the platform decides.
    const scheme = member === undefined ? listed : await this.schemeFor(member, call).catch(unlessCredential);
    if (scheme === undefined) return { acting: undefined, isSure: false };
    const held = member === undefined ? [] : heldRoles(scheme.roles, member);
    const acting = actingAccount({ userId: credential.userId, ownerId: group?.ownerId }, held);
    return { acting, isSure: group !== undefined && acting.rank > 0 };
  }
}

interface KnownActing {
  acting: ActingAccount | undefined;
  /** False if something could not be read, or if the account is not a member: it may have joined since. */
  isSure: boolean;
}

/** True if both show a role as equally high and powerful. Some accounts can't see a role's permissions. */
function isAlike(one: Pick<Role, 'rank' | 'powers'>, other: Pick<Role, 'rank' | 'powers'>): boolean {
  if (one.rank !== other.rank) return false;
  return one.powers === undefined || other.powers === undefined || one.powers.join() === other.powers.join();
}

/** The roles (ids) of settings. One that the list lacks may be private: it still protects its holders. */
function idsIn(entries: readonly RoleEntry[], meanings: readonly RoleMeaning[]): number[] {
  const ids = entries.flatMap(({ entry }) => (typeof entry === 'number' && !isRank(entry) ? entry : []));
  return [...ids, ...meanings.flatMap(({ roles }) => roles.map(({ id }) => id))];
}

/** A failed check does not justify a refusal: the platform itself refuses changes that the account may not make. */
function unlessCredential(error: unknown): undefined {
  if (isRankdError(error, 'platform_credential')) throw error;
}
