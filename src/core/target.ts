import { RankdError } from '../base/errors.ts';
import { shorten, suggest } from '../base/text.ts';
import { roleTitle } from './describe.ts';
import { listRoles } from './list-roles.ts';
import type { Role } from './model.ts';
import { type RoleName, rolesRequested, wordsOf } from './role-name.ts';
import { givableRoles, isUnclear, nameForRequest, type RoleScheme, undecided } from './role-scheme.ts';

/**
 * The requested role, among those that count: by a rank up to 255, a role id above 255, or a name. Throws
 * `unknown_rank`, `ambiguous_rank`, `ambiguous_name`, `rank_not_allowed` for guest, owner and roles off the ladder, or
 * `platform_unavailable` for one that may be the base role.
 */
export function resolveTarget(scheme: RoleScheme, asked: RoleName): Role {
  const named = rolesRequested(scheme, asked);
  if (named.some(isUnclear)) throw undecided();
  const givable = givableRoles(scheme);
  // A number counts among the givable roles alone. A name that is another role's never falls on a givable one that is only like it.
  const [target, ...others] =
    typeof asked === 'number'
      ? rolesRequested({ ...scheme, roles: givable }, asked)
      : named.filter((role) => givable.includes(role));
  if (target !== undefined && others.length === 0) return target;
  if (target !== undefined) throw ambiguous(asked, [target, ...others]);
  if (named.length > 0) throw notGivable(scheme, named);
  throw unknownRank(scheme, asked);
}

/** No role has this number or name. */
export function unknownRank(scheme: RoleScheme, asked: RoleName): RankdError {
  return new RankdError('unknown_rank', `${unknown(scheme, asked)} ${choice(scheme)}`);
}

function unknown(scheme: RoleScheme, asked: RoleName): string {
  if (typeof asked === 'number' && asked > 255) return `The group has no role with the id ${asked}; ranks end at 255.`;
  if (typeof asked === 'number') return `The group has no rank ${asked}.`;
  const nearest = nearestRole(givableRoles(scheme), asked);
  const question = nearest === undefined ? '' : ` Did you mean ${roleTitle(nearest)}?`;
  return `The group has no role "${shorten(asked, 40)}".${question}`;
}

/** A badge or a number next to the word that was mistyped is no mistake. */
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

function notGivable(scheme: RoleScheme, named: Role[]): RankdError {
  const special = named.find((role) => role.kind === 'guest' || role.kind === 'owner');
  const why =
    special === undefined
      ? 'is not on the promotion ladder in group.ladder'
      : `${standing(special)}, which can never be given`;
  const what = `"${shorten(named[0]?.name ?? '', 32)}" ${why}`;
  return new RankdError('rank_not_allowed', `${what}. ${choice(scheme)}`);
}

/** Only GetGroup names the owner: in a group that Roblox has moved to its new roles, other members can hold a role of rank 255. */
export function standing({ kind }: Pick<Role, 'kind'>): string {
  return kind === 'owner' ? 'has the rank of the owner role' : `is the ${kind} role`;
}

function choice(scheme: RoleScheme): string {
  const givable = { ...scheme, roles: givableRoles(scheme) };
  return `Choose one of ${listRoles(givable.roles, (role) => nameForRequest(givable, role))}.`;
}
