import { roleTitle } from '../../core/describe.ts';
import type { NamedUser, Role } from '../../core/model.ts';
import { nameForRequest, type RoleName } from '../../core/role-scheme.ts';
import { resolveAlongside, resolveHeld } from '../../core/target.ts';
import type { UserRef } from '../../core/user-ref.ts';
import type { CallContext } from '../../ports/index.ts';
import type { Ranking } from '../../usecases/change/ranking.ts';
import { findUser } from '../../usecases/people/users.ts';
import type { Cli } from '../cli.ts';

/**
 * Looks up a user by name, and reports the id. Given an id, skips the lookup and returns an empty name. Throws the same
 * errors as `findUser`.
 */
export async function userOf(
  cli: Cli,
  app: Pick<Ranking, 'store' | 'platform' | 'clock'>,
  asked: UserRef,
  call: CallContext,
): Promise<NamedUser> {
  if (typeof asked === 'number') return { id: asked, name: '' };
  const { id, name } = await findUser(app, asked, call);
  cli.sayResolved(`${name} is user ${id}.`, { asked, userId: id, name });
  return { id, name };
}

export async function userIdOf(cli: Cli, asked: UserRef): Promise<number> {
  if (typeof asked === 'number') return asked;
  return cli.withRanking(async (app, call) => (await userOf(cli, app, asked, call)).id);
}

/**
 * Returns the number that requests use for a role. If a name was given, reports the role that it means. Throws the same
 * errors as `GroupView.target`.
 */
export async function rankOf(
  cli: Cli,
  { group }: Pick<Ranking, 'group'>,
  asked: RoleName,
  call: CallContext,
): Promise<number> {
  if (typeof asked === 'number') return asked;
  const { scheme, target } = await roleOf(cli, { group }, asked, call);
  return nameForRequest(scheme, target);
}

/**
 * Returns the id of an extra role. If a name was given, reports the role that it means. Throws the same errors as
 * `resolveAlongside`.
 */
export async function alongsideOf(
  cli: Cli,
  { group }: Pick<Ranking, 'group'>,
  asked: RoleName,
  call: CallContext,
): Promise<number> {
  const role = await group.judged((scheme) => resolveAlongside(scheme, asked), call);
  sayRole(cli, asked, role);
  return role.id;
}

/**
 * Finds a role that members can hold. If a name was given, reports the role that it means. Throws the same errors as
 * `resolveHeld`.
 */
export async function findHeldRole(
  cli: Cli,
  { group }: Pick<Ranking, 'group'>,
  asked: RoleName,
  call: CallContext,
): Promise<Role> {
  const role = await group.judged((scheme) => resolveHeld(scheme, asked), call);
  sayRole(cli, asked, role);
  return role;
}

/** Finds the role with this name, and reports it. Throws the same errors as `GroupView.target`. */
export async function roleOf(
  cli: Cli,
  { group }: Pick<Ranking, 'group'>,
  asked: string,
  call: CallContext,
): ReturnType<Ranking['group']['target']> {
  const found = await group.target(asked, call);
  sayRole(cli, asked, found.target);
  return found;
}

function sayRole(cli: Cli, asked: RoleName, { id, name, rank }: Role): void {
  if (typeof asked === 'string')
    cli.sayResolved(`"${asked}" is ${roleTitle({ name, rank })}, role ${id}.`, { asked, roleId: id, name, rank });
}
