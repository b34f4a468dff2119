import { shorten } from '../base/text.ts';
import { isoTime } from '../base/time.ts';
import type { Hold, HoldPart, RankChange, RankRequest, Role, RoleChangeKind } from './model.ts';
import type { RolePlan } from './role-plan.ts';
import { type RoleScheme, rolesNamed } from './role-scheme.ts';

export function memberTitle({ rankeeName, rankeeId }: Pick<RankRequest, 'rankeeName' | 'rankeeId'>): string {
  return rankeeName === '' ? `Member ${rankeeId}` : `${shorten(rankeeName, 40)} (${rankeeId})`;
}

export function userTitle(userId: number, name: string | undefined): string {
  return name === undefined ? `user ${userId}` : `user ${name} (${userId})`;
}

/** The end of a hint about a setting, whose value can come from a file, a variable or a flag. */
export const originHint = '(`rankd config show --origin` shows where it is set)';

export function roleTitle({ name, rank }: Pick<Role, 'name' | 'rank'>): string {
  return `${shorten(name, 40)} (rank ${rank})`;
}

export function successMessage(request: RankRequest & { hold?: HoldPart }, plan: RolePlan): string {
  const { hold } = request;
  if (hold?.does !== 'begin') return rankMessage(request, plan);
  const until = untilWhen(hold);
  if (hold.kind === 'temporary') return `${rankMessage(request, plan).slice(0, -1)}, ${until}.`;
  const old = plan.highestBefore === undefined ? '' : `, was ${roleTitle(plan.highestBefore)}`;
  const as = plan.target.kind === 'base' ? '' : ` as ${roleTitle(plan.target)}`;
  return `${memberTitle(request)} is suspended ${until}${as}${old}.`;
}

/** Returns e.g. `until 2026-12-01 18:00 UTC`, or `until it is lifted` for a hold without an end. */
export function untilWhen({ endsAt }: Pick<Hold, 'endsAt'>): string {
  return endsAt === undefined ? 'until it is lifted' : `until ${isoTime(endsAt).slice(0, 16).replace('T', ' ')} UTC`;
}

export function holdTitle(hold: Hold): string {
  const what = hold.kind === 'suspension' ? 'is suspended' : 'has a temporary rank';
  return `${memberTitle(hold)} ${what} ${untilWhen(hold)}.`;
}

function rankMessage(request: RankRequest, plan: RolePlan): string {
  const who = memberTitle(request);
  const { target, highestBefore: old, steps, kind } = plan;
  if (kind !== undefined) {
    const { changed, unchanged } = roleChangeWords[kind];
    return `${who} ${steps.length > 0 ? changed : unchanged} ${roleTitle(target)}.`;
  }
  if (steps.length === 0) return `${who} is already ${roleTitle(target)}.`;
  if (old !== undefined && old.id !== target.id) return `${who} is now ${roleTitle(target)}, was ${roleTitle(old)}.`;
  // The target was already the member's highest role, so the change only takes lower roles.
  return `${who} is still ${roleTitle(target)}, without the ladder's lower roles.`;
}

const roleChangeWords = {
  role_added: { changed: 'now also holds', unchanged: 'already holds' },
  role_removed: { changed: 'no longer holds', unchanged: 'does not hold' },
} as const satisfies Record<RoleChangeKind, unknown>;

export function restoredMessage(
  request: Pick<RankRequest, 'rankeeName' | 'rankeeId'>,
  { scheme, plan, between }: { scheme: RoleScheme; plan: RolePlan; between: RankChange[] },
): string {
  const roles = scheme.roles.filter((role) => plan.goal.to.includes(role.id)).reverse();
  const others = between.map(({ id }) => id).join(', ');
  const also = others === '' ? '' : ` This also undoes ${others}, made in between.`;
  return `${memberTitle(request)} holds ${roles.map(roleTitle).join(', ')} again.${also}`;
}

/**
 * Explains which role the base role's rank number means, if another role has the same rank. Returns `undefined` if no
 * other role has it, or if the number is ambiguous.
 */
export function sharedRankOne(scheme: RoleScheme): string | undefined {
  const base = scheme.roles.find(({ kind }) => kind === 'base');
  const [named, ...others] = base === undefined ? [] : rolesNamed(scheme, base.rank);
  const other = scheme.roles.find(({ id, rank }) => id !== named?.id && rank === named?.rank);
  if (named === undefined || other === undefined || others.length > 0) return undefined;
  return `${other.name} and ${named.name} share rank ${named.rank}: the number ${named.rank} means ${named.name}, and the role id ${other.id} means ${other.name} (group.rank_1 in rankd.yaml decides)`;
}

/** The maximum size of a list in a message, in UTF-8 bytes. */
const maxBytes = 900;

/** Lists roles by rank or another number, e.g. `1 (Member), 10 (Officer)`. */
export function listRoles(roles: Role[], numberOf: (role: Role) => number | string = ({ rank }) => rank): string {
  return listWithin(roles.map((role) => `${numberOf(role)} (${shorten(role.name, 32)})`));
}

function listWithin(items: string[]): string {
  let bytes = 0;
  const shown = items.filter((item) => {
    bytes += Buffer.byteLength(item) + 2;
    return bytes <= maxBytes;
  });
  const more = items.length - shown.length;
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '');
}
