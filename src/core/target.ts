import { RankdError } from '../base/errors.ts';
import { shorten, suggest } from '../base/text.ts';
import { reaches } from './acting-account.ts';
import { listRoles, memberTitle, originHint, roleTitle } from './describe.ts';
import type { ActingAccount, Direction, Member, RankRequest, Role } from './model.ts';
import {
  alongsideRoles,
  givableRoles,
  heightOf,
  heldRoles,
  highestRole,
  isManaged,
  isRank,
  isUnclear,
  nameForRequest,
  type RoleName,
  type RoleScheme,
  rolesCalled,
  rolesMeant,
  rolesRequested,
  undecided,
  wordsOf,
} from './role-scheme.ts';
import { isNamed } from './rules/rule.ts';

/**
 * Resolves a rank (up to 255), a role id (above 255) or a name to a role. Throws `unknown_rank`, `ambiguous_rank`,
 * `ambiguous_name`, `rank_not_allowed` if no rank change can give the role, or `platform_unavailable` if the role may
 * be the base role. An `unknown_rank` or `rank_not_allowed` error lists the roles that the acting account can give, or
 * all givable roles if it can give none.
 */
export function resolveTarget(scheme: RoleScheme, requested: RoleName, acting?: ActingAccount): Role {
  return resolveAmong(scheme, requested, { candidates: givableRoles(scheme), acting });
}

/**
 * Resolves a request for an extra role: a custom role that is not on the ladder. Throws `needs_ladder` if there is no
 * ladder, and the same errors as `resolveTarget`.
 */
export function resolveAlongside(scheme: RoleScheme, requested: RoleName): Role {
  if (scheme.ladder === undefined) {
    throw new RankdError('needs_ladder', 'Extra roles need group.ladder: without a ladder, every role is a rank.', {
      hint: `list the ranks in group.ladder ${originHint}; all other roles are then extra roles`,
    });
  }
  return resolveAmong(scheme, requested, { candidates: alongsideRoles(scheme), acting: undefined });
}

/**
 * Resolves a role whose members are to be listed. Accepts any role except the guest role. Throws the same errors as
 * `resolveTarget`.
 */
export function resolveHeld(scheme: RoleScheme, requested: RoleName): Role {
  const candidates = scheme.roles.filter(({ kind }) => kind !== 'guest');
  return resolveAmong(scheme, requested, { candidates, acting: undefined });
}

interface Choice {
  candidates: Role[];
  acting: ActingAccount | undefined;
}

function resolveAmong(scheme: RoleScheme, requested: RoleName, among: Choice): Role {
  const named = rolesRequested(scheme, requested);
  if (named.some(isUnclear)) throw undecided();
  const { candidates } = among;
  // A number is resolved only among the candidates. A name that matches only roles outside them is refused, even if it
  // resembles a candidate's name.
  const [target, ...others] =
    typeof requested === 'number'
      ? rolesRequested({ ...scheme, roles: candidates }, requested)
      : named.filter((role) => candidates.includes(role));
  if (target !== undefined && others.length === 0) return target;
  if (target !== undefined) throw ambiguous(requested, [target, ...others]);
  const [role] = named;
  const why = role === undefined ? unknown(requested, candidates) : notGivable(scheme, role);
  throw new RankdError(role === undefined ? 'unknown_rank' : 'rank_not_allowed', `${why} ${choice(scheme, among)}`);
}

function unknownRank(scheme: RoleScheme, requested: RoleName): RankdError {
  const among = { candidates: givableRoles(scheme), acting: undefined };
  return new RankdError('unknown_rank', `${unknown(requested, among.candidates)} ${choice(scheme, among)}`);
}

function unknown(requested: RoleName, candidates: Role[]): string {
  if (typeof requested === 'number' && requested > 255)
    return `The group has no role with the id ${requested}; ranks end at 255.`;
  if (typeof requested === 'number') return `The group has no rank ${requested}.`;
  const nearest = nearestRole(candidates, requested);
  const question = nearest === undefined ? '' : ` Did you mean ${roleTitle(nearest)}?`;
  return `The group has no role "${shorten(requested, 40)}".${question}`;
}

/**
 * Returns the role with the most similar name, if any. Also compares parts of names, because names often contain badges
 * and numbers.
 */
function nearestRole(roles: Role[], requested: string): Role | undefined {
  const words = wordsOf(requested);
  const parts = roles.flatMap((role) => {
    const own = wordsOf(role.name);
    const runs = own.map((_, from) => own.slice(from, from + Math.max(1, words.length)).join(''));
    return [own.join(''), ...runs.filter((run) => run.length > 2)].map((part) => ({ role, part }));
  });
  const found = suggest(
    words.join(''),
    parts.map(({ part }) => part),
  );
  return parts.find(({ part }) => part === found)?.role;
}

function ambiguous(requested: RoleName, roles: [Role, ...Role[]]): RankdError {
  const ids = listRoles(roles, ({ id }) => id);
  const byRank = `More than one role has rank ${roles[0].rank}. Send the role id instead: ${ids}.`;
  if (typeof requested === 'number') return new RankdError('ambiguous_rank', byRank);
  const byName = `More than one role can be called "${shorten(requested, 40)}". Send the role id instead: ${ids}.`;
  return new RankdError('ambiguous_name', byName);
}

function notGivable(scheme: RoleScheme, role: Role): string {
  if (role.kind === 'guest') return `"${shorten(role.name, 32)}" is the guest role, which no member holds.`;
  if (role.kind === 'private') return `"${shorten(role.name, 32)}" is a private role, which rankd never gives.`;
  const onLadder = isManaged(scheme, role) ? 'is a rank of the ladder' : 'is not on the promotion ladder';
  const why =
    role.kind !== 'custom' ? `${describeKind(role)}, which can never be given` : `${onLadder} in group.ladder`;
  return `"${shorten(role.name, 32)}" ${why}.`;
}

/**
 * Describes a special role. `owner` is described by its rank: in a group that Roblox has migrated to its new roles,
 * members other than the owner can hold a role of rank 255.
 */
export function describeKind({ kind }: Pick<Role, 'kind'>): string {
  return kind === 'owner' ? 'has the rank of the owner role' : `is the ${kind} role`;
}

function choice(scheme: RoleScheme, { candidates, acting }: Choice): string {
  const reached = candidates.filter((role) => reaches(acting, role));
  const roles = reached.length > 0 ? reached : candidates;
  if (roles.length === 0) return 'There are no roles to choose from.';
  return `Choose one of ${listRoles(roles, (role) => {
    const number = nameForRequest({ ...scheme, roles: candidates }, role);
    return isRank(number) ? number : `role id ${number}`;
  })}.`;
}

/** A number of ranks up or down from the member's current rank. */
export interface Steps {
  step: Direction;
  stepCount?: number | undefined;
}

/**
 * Returns the role that is the given number of ranks above or below the member's rank, without counting locked roles.
 * Throws `no_further_rank` and the same errors as `neighbor`.
 */
export function nextRole(
  scheme: RoleScheme,
  member: Member,
  { step, stepCount = 1 }: Steps,
  lockedRoles: number[],
): Role {
  const height = heightOf(highestRole(scheme, heldRoles(scheme.roles, member)));
  const direction = step === 'promote' ? 'up' : 'down';
  let next = neighbor(scheme, { height, direction }, lockedRoles);
  for (let left = stepCount - 1; left > 0 && next !== undefined; left -= 1)
    next = neighbor(scheme, { height: heightOf(next), direction }, lockedRoles);
  if (next !== undefined) return next;
  const end = step === 'promote' ? 'highest' : 'lowest';
  const message =
    stepCount === 1
      ? `Member ${member.userId} already has the ${end} rank that can be given.`
      : `Member ${member.userId} is fewer than ${stepCount} ranks away from the ${end} rank that can be given.`;
  throw new RankdError('no_further_rank', message);
}

/**
 * Returns the next rung above or below a height, or `undefined` if there is none. Throws `ambiguous_rank` if several
 * roles share the next rank, or `platform_unavailable` if the result depends on which role is the base role.
 */
export function neighbor(
  scheme: RoleScheme,
  { height, direction }: { height: number; direction: 'up' | 'down' },
  lockedRoles: number[] = [],
): Role | undefined {
  const isUp = direction === 'up';
  const beyond = rungs(scheme, lockedRoles).filter((role) =>
    isUp ? heightOf(role) > height : heightOf(role) < height,
  );
  const nearest = (isUp ? Math.min : Math.max)(...beyond.map(heightOf));
  const [target, ...twins] = beyond.filter((role) => heightOf(role) === nearest);
  if (target === undefined && !isUp && scheme.roles.some(isUnclear)) throw undecided();
  if (target !== undefined && twins.length > 0) throw ambiguousStep(direction, [target, ...twins]);
  return target;
}

function ambiguousStep(direction: 'up' | 'down', roles: [Role, ...Role[]]): RankdError {
  const message = `The next rank ${direction} is ${roles[0].rank}, which more than one role has. Set one of them by its role id instead: ${listRoles(roles, ({ id }) => id)}.`;
  return new RankdError('ambiguous_rank', message, { hint: 'rankd rank set USER ROLE_ID' });
}

/**
 * Returns the roles that a step up or down can reach, ascending by rank. Leaves out locked roles, which no change can
 * give or take.
 */
export function rungs(scheme: RoleScheme, lockedRoles: number[]): Role[] {
  return givableRoles(scheme).filter((role) => !isNamed(role, lockedRoles));
}

/**
 * Returns the role to give to suspended members: the requested one or, if there is none, the base role. Throws
 * `unknown_rank`, `ambiguous_name` if several roles match, or `platform_unavailable` if the result depends on which
 * role is the base role.
 */
export function suspendedRole(scheme: RoleScheme, requested: RoleName | undefined): Role {
  const named = requested === undefined ? scheme.roles : rolesMeant(scheme, requested);
  if (named.some(isUnclear)) throw undecided();
  const [role, ...others] = named.filter(
    ({ kind }) => kind === 'base' || (requested !== undefined && kind === 'custom'),
  );
  const hint =
    'correct policy.suspension.role in rankd.yaml, or name the role with --role; `rankd group roles` lists them';
  if (role === undefined)
    throw new RankdError(
      'unknown_rank',
      `The group has no role ${requested ?? 'that every member has'} for suspended members.`,
      { hint },
    );
  if (others.length === 0) return role;
  throw new RankdError('ambiguous_name', `More than one role matches ${requested}, the role for suspended members.`, {
    hint,
  });
}

/** Returns the reason why the setting's role can't be given to suspended members, or `undefined` if it can. */
export function flawOfSuspendedRole(
  role: Role,
  { lockedRoles, acting }: { lockedRoles: number[]; acting: ActingAccount | undefined },
): string | undefined {
  if (isNamed(role, lockedRoles))
    return `policy.suspension.role is ${roleTitle(role)}, which policy.locked_roles names`;
  if (reaches(acting, role)) return undefined;
  return `policy.suspension.role is ${roleTitle(role)}, which is not below the acting account's rank`;
}

export interface ExpectedRank {
  /** The rank, role id or role name that the member's highest role must match. */
  ifRank?: RoleName | undefined;
  /** The id of a role that the member must hold. */
  holding?: number | undefined;
  /** The name of the member's rank according to the game. A name that no role has is ignored. */
  oldRankName?: string | undefined;
}

/**
 * Returns the refusal if the member's rank or role is not the expected one. Throws `unknown_rank` if no role has the
 * expected rank.
 */
export function refusalOfOtherRank(
  { scheme, member }: { scheme: RoleScheme; member: Member },
  { ifRank, holding, oldRankName }: ExpectedRank,
  request: RankRequest,
): RankdError | undefined {
  const held = heldRoles(scheme.roles, member);
  if (holding !== undefined && !held.some(({ id }) => id === holding)) return lost(scheme, holding, request);
  const highest = highestRole(scheme, held);
  if (ifRank !== undefined && !isRankOf(scheme, highest, ifRank)) return differs(request, highest, `${ifRank}`);
  const named = oldRankName === undefined ? [] : rolesCalled(scheme.roles, oldRankName);
  const isStale = named.length > 0 && !named.some((role) => held.includes(role));
  return isStale ? differs(request, highest, `${oldRankName}`) : undefined;
}

function isRankOf(scheme: RoleScheme, highest: Role | undefined, expected: RoleName): boolean {
  const roles = rolesRequested(scheme, expected);
  if (roles.length === 0 && expected !== 0) throw unknownRank(scheme, expected);
  if (typeof expected === 'number' && expected <= 255) return (highest?.rank ?? 0) === expected;
  return highest !== undefined && roles.includes(highest);
}

function lost({ roles }: RoleScheme, roleId: number, request: RankRequest): RankdError {
  const role = roles.find(({ id }) => id === roleId);
  const title = role === undefined ? `role ${roleId}` : roleTitle(role);
  return new RankdError('rank_differs', `${memberTitle(request)} no longer holds ${title}. Nothing was changed.`);
}

function differs(request: RankRequest, found: Role | undefined, expected: string): RankdError {
  const rank = found === undefined ? 'has no rank' : `is ${roleTitle(found)}`;
  return new RankdError(
    'rank_differs',
    `${memberTitle(request)} ${rank}; the request expects ${expected}. Nothing was changed.`,
  );
}
