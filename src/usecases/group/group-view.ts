import { isRankdError, RankdError } from '../../base/errors.ts';
import { actingAccount } from '../../core/acting-account.ts';
import { refusalOfCredential } from '../../core/credential.ts';
import type { ActingAccount, Group, Member, Role } from '../../core/model.ts';
import { isRank, type RoleName } from '../../core/role-name.ts';
import { heldRoles, isUnlisted, type RankOne } from '../../core/role-scheme.ts';
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
/** A change is judged by roles that were read no longer ago than this before its member was. */
const confirmedMs = 2_000;
const actingLifeMs = 60_000;
const aboutLifeMs = 60_000;
/** A caller that keeps sending ranks nobody has must not turn each request into a read of the role list. */
const refreshSpacingMs = 5_000;
/** For so long a check asks for nothing again that could not be read. */
const failureLifeMs = 5_000;
/** The share of a caller's time that the check may take: changes can be made without it. */
const checkShare = 0.25;
/** A check that had less time than this and failed says nothing of the platform. */
const leastCheckMs = 250;

export interface GroupViewOptions {
  /** Names this group and no other that rankd can be configured for. */
  title: string;
  platform: Platform;
  clock: Clock;
  store: Pick<Store, 'findMeanings' | 'updateMeanings' | 'listKeys'>;
  /** The entries of the configuration that name roles. */
  entries: readonly RoleEntry[];
  rankOne: RankOne;
  /** True if entries that are read for the first time get their meaning by this view. Without it, `takeEffect` says so. */
  isInForce: boolean;
  /** Is told of the roles each time they were read; what it throws is of no consequence. */
  onRoles?: (roles: Role[]) => Promise<void>;
}

/** A short-lived cache of the group's roles and the acting account. It never caches memberships. */
export class GroupView {
  readonly title: string;
  readonly #options: GroupViewOptions;
  readonly #scheme: Remembered<GroupScheme>;
  readonly #acting: Remembered<KnownActing>;
  readonly #about: Remembered<Group>;
  /** By id: roles that were read alone. */
  readonly #singles = new Map<number, Remembered<Omit<Role, 'kind'> | undefined>>();
  /** When each role (id) that the list lacks was last held or named, on `Clock.monotonic()`. They are read along with the list. */
  readonly #unlistedAt = new Map<number, number>();
  #name: string | undefined;
  #misfits: readonly RoleMisfit[] | undefined;
  #isInForce: boolean;
  #isRenewed: TakenUp['isRenewed'] = () => false;
  /** The entries that were read and whose meaning is not stored yet. */
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

  /** The group's name as it was when it was read last; `undefined` before that. */
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

  /** The entries that did not say what they mean when the roles were read last; `undefined` before that. */
  get misfits(): readonly RoleMisfit[] | undefined {
    return this.#misfits;
  }

  /** Before the first read: the entries of which `isRenewed` is true mean what they say now, whatever they meant before. */
  relearn(isRenewed: TakenUp['isRenewed']): void {
    this.#isRenewed = isRenewed;
  }

  /** From now on, what entries mean when they are read for the first time is stored. Forgets entries that are gone, unless others may have them. */
  async takeEffect({ prunes }: { prunes: boolean }): Promise<void> {
    this.#isInForce = true;
    if (this.#unstored !== undefined) await this.#store({ ...this.#unstored, prunes });
  }

  /** The roles, the ladder, and the roles that all other settings mean. */
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
  target(asked: RoleName, call: CallContext): Promise<{ scheme: GroupScheme; target: Role }> {
    return this.judged((scheme) => ({ scheme, target: resolveTarget(scheme, asked) }), call);
  }

  /** The judge's result. No refusal comes from memory alone: before it throws one, it reads the roles again unless they are a few seconds old. */
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
   * The scheme with every role that this member holds. A role that the list lacks was made a moment ago, and a second read of the list
   * shows it; or it is private: then it is read alone, and joins the scheme as that. Roblox may deny that it exists.
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
   * Makes sure that a change is judged by the present roles and not by remembered ones. Call it while the member is read: it takes as long. The
   * list shows the roles that the member may hold; the role to give, if it is known, is read alone as well. If the two differ, both are read
   * again. Throws `platform_unavailable` if they still do. False if the role is another than the caller knew: then plan again.
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
    const message = 'Roblox contradicts itself on the rank of this role, which was changed a moment ago. Try again.';
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

  /** Roles that the list lacks, as the platform shows each alone: no older than a confirmed list. */
  #unlisted(ids: readonly number[], call: CallContext): Promise<Array<Omit<Role, 'kind'> | undefined>> {
    for (const id of ids) this.#unlistedAt.set(id, this.#options.clock.monotonic());
    return Promise.all(ids.map((id) => this.#single(id).get(call, { maxAgeMs: confirmedMs })));
  }

  /** One role, as the platform shows it alone. */
  #single(id: number): Remembered<Omit<Role, 'kind'> | undefined> {
    const { clock, platform } = this.#options;
    const known = this.#singles.get(id) ?? new Remembered(clock, rolesLifeMs, (call) => platform.role(id, call));
    this.#singles.set(id, known);
    return known;
  }

  /**
   * The acting account; `undefined` if the platform does not say who it is. Reads it again before it says that the account is not
   * a member, and soon if something could not be read. Throws `platform_credential` if the platform says that the credential is of
   * no use here, and as the check does if the caller had hardly any time left for it.
   */
  async acting(call: CallContext): Promise<ActingAccount | undefined> {
    const known = await this.#acting.get(call);
    if (known.isSure) return known.acting;
    const again = this.#acting.get(call, { maxAgeMs: refreshSpacingMs });
    if (known.acting?.rank === 0) return (await again).acting;
    return ((await again.catch(unlessCredential)) ?? known).acting;
  }

  /**
   * Resolves if roles and acting account can be read, or were a short while ago. Throws why not, from memory for a while: whoever
   * asks again and again does not make rankd ask the platform each time.
   */
  async requireReadable(call: CallContext): Promise<void> {
    await Promise.all([this.#scheme.get(call, { failureLifeMs }), this.#acting.get(call, { failureLifeMs })]);
  }

  async #readScheme(call: CallContext): Promise<GroupScheme> {
    const { platform, store, clock, rankOne, onRoles } = this.#options;
    const [roles] = await Promise.all([platform.roles(call), this.#readUnlisted(call)]);
    const group = { roles, rankOne };
    await onRoles?.(group.roles).catch(() => undefined);
    const [kept, keys] = await Promise.all([
      store.findMeanings(this.title),
      store.listKeys({ acceptedAt: clock.now() }),
    ]);
    const entries = [...this.entries, ...keyEntries(keys)];
    const meanings = kept.filter((one) => !this.#isRenewed(one));
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

  /** Reads the roles again that the list lacked a while ago, next to it: whoever needs one later need not wait for it. */
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

  /** In a lane of its own: all callers need it, and whoever happens to read it may have to wait behind others. */
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
      this.#readGroup(soon()).catch(() => undefined), // the role also tells who is the owner; a key that is dead is no use for the member either
      this.scheme(call),
      platform.getMember(credential.userId, call),
    ]);
    // Its highest role can be a private one. As long as that can't be read, the platform decides.
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

/** True if both show a role as equally high and powerful. Not every account is shown what a role may do. */
function isAlike(one: Pick<Role, 'rank' | 'powers'>, other: Pick<Role, 'rank' | 'powers'>): boolean {
  if (one.rank !== other.rank) return false;
  return one.powers === undefined || other.powers === undefined || one.powers.join() === other.powers.join();
}

/** The roles (ids) that settings mean. One that the list lacks can be private: it still guards whoever holds it. */
function idsIn(entries: readonly RoleEntry[], meanings: readonly RoleMeaning[]): number[] {
  const ids = entries.flatMap(({ entry }) => (typeof entry === 'number' && !isRank(entry) ? entry : []));
  return [...ids, ...meanings.flatMap(({ roles }) => roles.map(({ id }) => id))];
}

/** A check that fails is no reason to refuse: the platform refuses by itself what the account may not do. */
function unlessCredential(error: unknown): undefined {
  if (isRankdError(error, 'platform_credential')) throw error;
}
