import { isRankdError, RankdError } from '../../base/errors.ts';
import { isOutsider, reaches, refusalOfOutsider, standingWords } from '../../core/acting-account.ts';
import { refusalOfCredential } from '../../core/credential.ts';
import type { ActingAccount, Credential, Group, Role } from '../../core/model.ts';
import { givableRoles, isUnclear, type RoleScheme, undecided } from '../../core/role-scheme.ts';
import type { CallContext } from '../../ports/index.ts';
import type { Ranking } from '../change/ranking.ts';

export interface ExaminedGroup {
  group: Group;
  /** Absent if the platform does not report it. */
  acting?: ActingAccount;
  expiresAt?: number;
  /** True if the key is allowed to change roles in the group; absent if the platform does not report it. */
  canWrite?: boolean;
  scheme: RoleScheme;
  /** The roles that rankd could give, in ascending order of rank. */
  givable: Role[];
}

/** Reads the group from the platform. Throws if rankd can't change ranks in the group with this key. */
export async function examineGroup(
  { platform, group }: Ranking,
  call: CallContext,
  groupId: number,
): Promise<ExaminedGroup> {
  const credential = await platform.checkCredential(call);
  if (refusalOfCredential(credential) !== undefined) throw refusedKey(credential, groupId);
  const found = await platform.group(call).catch(unknownGroup);
  const acting = await group.acting(call);
  const scheme = await group.scheme(call);
  if (scheme.roles.some(isUnclear)) throw undecided();
  const givable = givableRoles(scheme).filter((role) => reaches(acting, role));
  if (acting !== undefined && isOutsider(acting)) throw refusalOfOutsider(acting);
  if (acting?.mayChangeRanks === false) throw lacksPermission(acting);
  if (givable.every(({ kind }) => kind === 'base')) throw reachesNothing(acting);
  const { expiresAt, canWrite } = credential;
  return {
    group: found,
    scheme,
    givable,
    ...(acting && { acting }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(canWrite !== undefined && { canWrite }),
  };
}

function refusedKey({ state, refusal }: Credential, groupId: number): RankdError {
  const notAccepted = 'Roblox does not accept this key';
  const flaws = {
    valid: notAccepted,
    invalid: refusal === undefined ? notAccepted : `${notAccepted} (${refusal})`,
    unreported: notAccepted,
    disabled: 'This key is disabled',
    expired: 'This key has expired',
  };
  return new RankdError('platform_credential', `${flaws[state]}.`, {
    hint: `copy the key again from the Creator Dashboard (API Keys) and check there that it allows this address, or make a new Roblox key with group:write for group ${groupId}`,
  });
}

function unknownGroup(cause: unknown): never {
  if (!isRankdError(cause, 'platform_rejected')) throw cause;
  throw new RankdError('not_found', cause.message, {
    cause,
    hint: "give --group the number in the address of the group's page",
  });
}

function lacksPermission(acting: ActingAccount): RankdError {
  return new RankdError(
    'above_acting_account',
    `The key acts as user ${acting.userId} (${standingWords(acting)}), whose roles lack the permission "Manage lower-ranked member ranks".`,
    { hint: "give one of its roles that permission in the group's settings, then run the command again" },
  );
}

function reachesNothing(acting: ActingAccount | undefined): RankdError {
  const account =
    acting === undefined
      ? 'the account of the key'
      : `user ${acting.userId} (${standingWords(acting)}), the key's account`;
  return new RankdError('above_acting_account', `No role of the group is below ${account}.`, {
    hint: "give that account a role above the ranks that rankd should change in the group's settings, then run the command again",
  });
}
