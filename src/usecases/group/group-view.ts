import { isRankdError, RankdError } from '../../base/errors.ts';
import { actingAccount } from '../../core/acting-account.ts';
import { refusalOfCredential } from '../../core/credential.ts';
import { resolveLadder } from '../../core/ladder.ts';
import type { ActingAccount, Member, Role } from '../../core/model.ts';
import { heldRoles, type RoleScheme, resolveTarget } from '../../core/role-scheme.ts';
import { withShare } from '../../ports/call-context.ts';
import type { CallContext, Clock, Platform } from '../../ports/index.ts';
import { Remembered } from './remembered.ts';

const rolesLifeMs = 30_000;
const actingLifeMs = 60_000;
/** A caller that keeps sending ranks nobody has must not turn each request into a read of the role list. */
const refreshSpacingMs = 5_000;
/** The share of the caller's remaining time that the check may take: changes can be made without it. */
const checkShare = 0.25;

/** What rankd remembers of the group for a short while: its roles, and the account it acts as. Memberships never. */
export class GroupView {
  /** Distinguishes it from every other group that rankd can be given. */
  readonly title: string;
  readonly #platform: Platform;
  readonly #clock: Clock;
  readonly #ladder: number[] | undefined;
  readonly #scheme: Remembered<RoleScheme>;
  readonly #acting: Remembered<ActingAccount | undefined>;

  constructor({
    title,
    platform,
    clock,
    ladder,
  }: {
    title: string;
    platform: Platform;
    clock: Clock;
    ladder: number[] | undefined;
  }) {
    this.title = title;
    this.#platform = platform;
    this.#clock = clock;
    this.#ladder = ladder;
    this.#scheme = new Remembered(clock, rolesLifeMs, (call) => this.#readScheme(call));
    this.#acting = new Remembered(clock, actingLifeMs, (call) => this.#readActing(call));
  }

  /** The roles and the ladder. Throws `config_invalid` if the ladder does not fit the group. */
  scheme(call: CallContext): Promise<RoleScheme> {
    return this.#scheme.get(call);
  }

  /** For callers that only look: this view, or one without its ladder if that does not fit the group; `tell` is told why. */
  async fitting(call: CallContext, tell: (misfit: RankdError) => void): Promise<GroupView> {
    try {
      await this.scheme(call);
      return this;
    } catch (error) {
      if (!isRankdError(error, 'config_invalid')) throw error;
      tell(error);
      return new GroupView({ title: this.title, platform: this.#platform, clock: this.#clock, ladder: undefined });
    }
  }

  /** The scheme and the role that `newRankId` means. Reads the roles again before it says that there is no such rank. */
  async target(newRankId: number, call: CallContext): Promise<{ scheme: RoleScheme; target: Role }> {
    const scheme = await this.scheme(call);
    try {
      return { scheme, target: resolveTarget(scheme, newRankId) };
    } catch (error) {
      if (!isRankdError(error, 'unknown_rank', 'ambiguous_rank')) throw error;
      const fresh = await this.#scheme.get(call, { maxAgeMs: refreshSpacingMs });
      return { scheme: fresh, target: resolveTarget(fresh, newRankId) };
    }
  }

  /**
   * The scheme, read again if the member holds a role that it does not know: a plan must know every role held.
   * Throws `platform_unavailable` if the list of roles does not have that role yet.
   */
  async schemeFor(member: Member, call: CallContext): Promise<RoleScheme> {
    const scheme = await this.scheme(call);
    if (unknownRole(member, scheme) === undefined) return scheme;
    const fresh = await this.#scheme.get(call, { maxAgeMs: refreshSpacingMs });
    const unknown = unknownRole(member, fresh);
    if (unknown === undefined) return fresh;
    throw new RankdError(
      'platform_unavailable',
      `Member ${member.userId} holds a role (id ${unknown}) that the platform's list of roles does not have yet; try again.`,
      { retryAfterMs: refreshSpacingMs },
    );
  }

  /**
   * The acting account; `undefined` if the platform does not say who it is. It is read again before rankd says that it is not a
   * member. Throws `platform_credential` if the platform says that the credential is of no use here.
   */
  async acting(call: CallContext): Promise<ActingAccount | undefined> {
    const acting = await this.#acting.get(call);
    return acting?.rank === 0 ? this.#acting.get(call, { maxAgeMs: refreshSpacingMs }) : acting;
  }

  async #readScheme(call: CallContext): Promise<RoleScheme> {
    const roles = await this.#platform.roles(call);
    return { roles, ladder: this.#ladder === undefined ? undefined : resolveLadder(roles, this.#ladder) };
  }

  async #readActing(call: CallContext): Promise<ActingAccount | undefined> {
    const soon = () => withShare(call, { clock: this.#clock, share: checkShare });
    const credential = await this.#platform.checkCredential(soon()).catch(unlessCredential);
    if (credential === undefined) return undefined;
    const refusal = refusalOfCredential(credential);
    if (refusal !== undefined) throw refusal;
    if (credential.userId === undefined) return undefined;
    const [group, { roles }, member] = await Promise.all([
      this.#platform.group(soon()).catch(unlessCredential), // the owner's role shows who owns the group, too
      this.scheme(call),
      this.#platform.getMember(credential.userId, call),
    ]);
    const held = member === undefined ? [] : heldRoles(roles, member);
    return actingAccount({ userId: credential.userId, ownerId: group?.ownerId }, held);
  }
}

function unknownRole({ roleIds }: Member, { roles }: RoleScheme): number | undefined {
  return roleIds.find((id) => !roles.some((role) => role.id === id));
}

/** A check that can't be made is no reason to refuse: the platform itself refuses what the account may not do. */
function unlessCredential(error: unknown): undefined {
  if (isRankdError(error, 'platform_credential')) throw error;
}
