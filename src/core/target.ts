import { RankdError } from '../base/errors.ts';
import { shorten, suggest } from '../base/text.ts';
import { reaches } from './acting-account.ts';
import { atItsOrigin, listRoles, memberTitle, roleTitle } from './describe.ts';
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
 * The requested role, among those that count: by a rank up to 255, a role id above 255, or a name. Throws
 * `unknown_rank`, `ambiguous_rank`, `ambiguous_name`, `rank_not_allowed` for guest, owner and roles off the ladder, or
 * `platform_unavailable` for one that may be the base role. An error proposes only roles that the acting account can
 * give.
 */
export function resolveTarget(scheme: RoleScheme, asked: RoleName, acting?: ActingAccount): Role {
  return resolveAmong(scheme, asked, { candidates: givableRoles(scheme), acting });
}

/**
 * The requested extra role, to be given or taken: a custom role that is not on the ladder. Throws
 * `needs_ladder` without a ladder, and otherwise like `resolveTarget`.
 */
export function resolveAlongside(scheme: RoleScheme, asked: RoleName): Role {
  if (scheme.ladder === undefined) {
    throw new RankdError('needs_ladder', 'Extra roles need group.ladder: without a ladder, every role is a rank.', {
      hint: `list the ranks in group.ladder ${atItsOrigin}; all other roles are then extra roles`,
    });
  }
  return resolveAmong(scheme, asked, { candidates: alongsideRoles(scheme), acting: undefined });
}

/** The requested role, whose holders are to be listed: any but the guest role. Throws like `resolveTarget`. */
export function resolveHeld(scheme: RoleScheme, asked: RoleName): Role {
  const candidates = scheme.roles.filter(({ kind }) => kind !== 'guest');
  return resolveAmong(scheme, asked, { candidates, acting: undefined });
}

interface Choice {
  candidates: Role[];
  acting: ActingAccount | undefined;
}

function resolveAmong(scheme: RoleScheme, asked: RoleName, among: Choice): Role {
  const named = rolesRequested(scheme, asked);
  if (named.some(isUnclear)) throw undecided();
  const { candidates } = among;
  // A number counts among the candidates alone. The name of another role never matches a candidate that is only similar.
  const [target, ...others] =
    typeof asked === 'number'
      ? rolesRequested({ ...scheme, roles: candidates }, asked)
      : named.filter((role) => candidates.includes(role));
  if (target !== undefined && others.length === 0) return target;
  if (target !== undefined) throw ambiguous(asked, [target, ...others]);
  const [role] = named;
  const why = role === undefined ? unknown(asked, candidates) : notGivable(scheme, role);
  throw new RankdError(role === undefined ? 'unknown_rank' : 'rank_not_allowed', `${why} ${choice(scheme, among)}`);
}

/** No role has this number or name. */
function unknownRank(scheme: RoleScheme, asked: RoleName): RankdError {
  const among = { candidates: givableRoles(scheme), acting: undefined };
  return new RankdError('unknown_rank', `${unknown(asked, among.candidates)} ${choice(scheme, among)}`);
}

function unknown(asked: RoleName, candidates: Role[]): string {
  if (typeof asked === 'number' && asked > 255) return `The group has no role with the id ${asked}; ranks end at 255.`;
  if (typeof asked === 'number') return `The group has no rank ${asked}.`;
  const nearest = nearestRole(candidates, asked);
  const question = nearest === undefined ? '' : ` Did you mean ${roleTitle(nearest)}?`;
  return `The group has no role "${shorten(asked, 40)}".${question}`;
}

/** A badge or a number next to the mistyped word does not count as a mistake. */
function nearestRole(roles: Role[], asked: string): Role | undefined {
  const words = wordsOf(asked);
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

function ambiguous(asked: RoleName, roles: [Role, ...Role[]]): RankdError {
  const ids = listRoles(roles, ({ id }) => id);
  const byRank = `More than one role has rank ${roles[0].rank}. Send the role id instead: ${ids}.`;
  if (typeof asked === 'number') return new RankdError('ambiguous_rank', byRank);
  const byName = `More than one role can be called "${shorten(asked, 40)}". Send the role id instead: ${ids}.`;
  return new RankdError('ambiguous_name', byName);
}

function notGivable(scheme: RoleScheme, role: Role): string {
  if (role.kind === 'guest') return `"${shorten(role.name, 32)}" is the guest role, which no member holds.`;
  const isSpecial = role.kind !== 'custom' && role.kind !== 'private';
  const onLadder = isManaged(scheme, role) ? 'is a rank of the ladder' : 'is not on the promotion ladder';
  const why = isSpecial ? `${standing(role)}, which can never be given` : `${onLadder} in group.ladder`;
  return `"${shorten(role.name, 32)}" ${why}.`;
}

/** Only GetGroup names the owner: in a group that Roblox has moved to its new roles, other members can hold a role of rank 255. */
export function standing({ kind }: Pick<Role, 'kind'>): string {
  return kind === 'owner' ? 'has the rank of the owner role' : `is the ${kind} role`;
}

function choice(scheme: RoleScheme, { candidates, acting }: Choice): string {
  const reached = candidates.filter((role) => reaches(acting, role));
  const roles = reached.length > 0 ? reached : candidates;
  if (roles.length === 0) return 'The group has no such role.';
  return `Choose one of ${listRoles(roles, (role) => {
    const number = nameForRequest({ ...scheme, roles: candidates }, role);
    return isRank(number) ? number : `role id ${number}`;
  })}.`;
}

/** The distance from the member's present rank. */
export interface Steps {
  step: Direction;
  /** The number of ranks up or down; 1 by default. */
  stepCount?: number | undefined;
}

/**
 * The role that is the given number of ranks above or below a member's. Locked roles are skipped. Throws
 * `no_further_rank` and `ambiguous_rank`.
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
 * The next rung above or below a height; `undefined` if there is none. Throws `ambiguous_rank`, and `platform_unavailable` if that
 * depends on which role is the base role.
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

/** A step names no role, so its error lists the roles that can be named. */
function ambiguousStep(direction: 'up' | 'down', roles: [Role, ...Role[]]): RankdError {
  const message = `The next rank ${direction} is ${roles[0].rank}, which more than one role has. Set one of them by its role id instead: ${listRoles(roles, ({ id }) => id)}.`;
  return new RankdError('ambiguous_rank', message, { hint: 'rankd rank set USER ROLE_ID' });
}

/**
 * The roles for steps up and down, ascending by rank. Locked roles are left out, because no change can give or take
 * them.
 */
export function rungs(scheme: RoleScheme, lockedRoles: number[]): Role[] {
  return givableRoles(scheme).filter((role) => !isNamed(role, lockedRoles));
}

/**
 * The role of suspended members: the requested one, or only the base role. Throws `unknown_rank`, `ambiguous_name` if
 * several roles match, and `platform_unavailable` if the base role is unclear.
 */
export function suspendedRole(scheme: RoleScheme, asked: RoleName | undefined): Role {
  const named = asked === undefined ? scheme.roles : rolesMeant(scheme, asked);
  if (named.some(isUnclear)) throw undecided();
  const [role, ...others] = named.filter(({ kind }) => kind === 'base' || (asked !== undefined && kind === 'custom'));
  const hint =
    'correct policy.suspension.role in rankd.yaml, or name the role with --role; `rankd group roles` lists them';
  if (role === undefined)
    throw new RankdError(
      'unknown_rank',
      `The group has no role ${asked ?? 'that every member has'} for suspended members.`,
      { hint },
    );
  if (others.length === 0) return role;
  throw new RankdError('ambiguous_name', `More than one role matches ${asked}, the role for suspended members.`, {
    hint,
  });
}

/** The reason that members can't be suspended with the role of the setting; `undefined` if they can. */
export function flawOfSuspendedRole(
  role: Role,
  { lockedRoles, acting }: { lockedRoles: number[]; acting: ActingAccount | undefined },
): string | undefined {
  if (isNamed(role, lockedRoles))
    return `policy.suspension.role is ${roleTitle(role)}, which policy.locked_roles names`;
  if (reaches(acting, role)) return undefined;
  return `policy.suspension.role is ${roleTitle(role)}, which is not below the acting account's rank`;
}

/** The rank or role that a request expects the member to have. */
export interface ExpectedRank {
  /** The member's rank has to be this one. */
  ifRank?: RoleName | undefined;
  /** The id of a role that the member has to hold. */
  holding?: number | undefined;
  /** The rank as the game knew it, if the policy compares it: a name of no role is ignored. */
  oldRankName?: string | undefined;
}

/** The refusal of a change that expects another rank or role than the member has. Throws `unknown_rank` if no role has the expected one. */
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
