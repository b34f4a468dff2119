import { RankdError } from '../base/errors.ts';
import type { NamedUser } from './model.ts';

/** A user as typed: an id or a user name. */
export type UserRef = number | string;

/** Parses a user id, a user name or the address of a profile page; returns `undefined` for anything else. */
export function userIn(text: string): UserRef | undefined {
  const id = idIn(text) ?? idInAddress('user', text);
  const name = text.replace(/^@/, '');
  return id ?? (isUserName(name) && !/^\d+$/.test(text) ? name : undefined);
}

export const userWords =
  'a user id, a user name (3 to 20 letters, digits or underscores; not a display name), or the address of the profile page';

/** True if the text could be a user name. Display names can contain other characters, and are not unique. */
export function isUserName(text: string): boolean {
  return /^[A-Za-z0-9_]{3,20}$/.test(text);
}

/**
 * Returns the refusal if `given` is one of the user's previous names. The platform also finds users by previous names,
 * but the caller may mean someone else, and ranking the wrong person is worse than asking again.
 */
export function refusalOfPreviousName(given: string, { id, name }: NamedUser): RankdError | undefined {
  if (name.toLowerCase() === given.toLowerCase()) return undefined;
  return new RankdError('user_renamed', `${name} (${id}) used to be called ${given}: use ${id} or @${name}.`, {
    hint: `check on Roblox which user you mean, then use ${id} or @${name}`,
  });
}

export function idIn(text: string): number | undefined {
  const id = /^\d{1,16}$/.test(text) ? Number(text) : 0;
  return id > 0 && Number.isSafeInteger(id) ? id : undefined;
}

/** Patterns that match the id in the address of each kind of page. */
const pages = {
  user: [/\/users\/(\d+)/],
  group: [/\/(?:communities|groups|share\/g)\/(\d+)/],
  place: [/\/places\/(\d+)/, /\/games\/(\d+)/, /[?&]placeid=(\d+)/i],
  experience: [/\/experiences\/(\d+)/],
};

/** Returns the id from a pasted roblox.com address, or `undefined` if the text is not an address of this kind. */
export function idInAddress(kind: keyof typeof pages, text: string): number | undefined {
  const [, path] = /^(?:https?:\/\/)?(?:[\w-]+\.)?roblox\.com(\/[^#]*)/i.exec(text.trim()) ?? [];
  if (path === undefined) return undefined;
  const [digits] = pages[kind].flatMap((page) => page.exec(path)?.[1] ?? []);
  const id = Number(digits);
  return id > 0 && Number.isSafeInteger(id) ? id : undefined;
}

/**
 * True if the address is that of an experience rather than a place. Games send their place id, unless a script
 * explicitly sends the experience's id instead.
 */
export function namesExperience(text: string): boolean {
  return idInAddress('place', text) === undefined && idInAddress('experience', text) !== undefined;
}

export const experienceWords =
  "This address contains a universe id, but games send a place id (game.PlaceId): open the place's page, under Places, and use its address; or add all places of the experience with rankd whitelist add --experience";
