import type { RankChange, RankRequest, Role } from './model.ts';
import type { RolePlan, RoleScheme } from './role-plan.ts';

/** How messages name a member: `Sam (1001)`, or `Member 1001` where the caller gave no name. */
export function memberTitle({ rankeeName, rankeeId }: Pick<RankRequest, 'rankeeName' | 'rankeeId'>): string {
  return rankeeName === '' ? `Member ${rankeeId}` : `${shorten(rankeeName, 40)} (${rankeeId})`;
}

/** How messages name a role: `Officer (rank 20)`. */
export function roleTitle({ name, rank }: Pick<Role, 'name' | 'rank'>): string {
  return `${shorten(name, 40)} (rank ${rank})`;
}

/** What the caller of an applied change is told. */
export function successMessage(request: RankRequest, { roles }: RoleScheme, plan: RolePlan): string {
  const who = memberTitle(request);
  if (plan.steps.length === 0) return `${who} already is ${roleTitle(plan.target)}.`;
  const old = roles.filter((role) => plan.goal.from.includes(role.id) && role.rank === plan.rankBefore).at(-1);
  if (old?.id === plan.target.id) return `${who} is still ${roleTitle(old)}, without the ladder's lower roles.`;
  return `${who} is now ${roleTitle(plan.target)}${old === undefined ? '' : `, was ${roleTitle(old)}`}.`;
}

/** What is kept of a change that put roles back. */
export function restoredMessage(
  request: Pick<RankRequest, 'rankeeName' | 'rankeeId'>,
  { scheme, plan, between }: { scheme: RoleScheme; plan: RolePlan; between: RankChange[] },
): string {
  const roles = scheme.roles.filter((role) => plan.goal.to.includes(role.id)).reverse();
  const others = between.map(({ id }) => id).join(', ');
  const also = others === '' ? '' : ` This takes back ${others} as well, made in between.`;
  return `${memberTitle(request)} holds ${roles.map(roleTitle).join(', ')} again.${also}`;
}

/** At most `most` characters, cut between characters and never inside one. */
export function shorten(text: string, most: number): string {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : text;
}
