import { isUserName } from './user-name.ts';

/** A user as a person types one: an id, or a user name. */
export type AskedUser = number | string;

/** `undefined` if the text can be no user. */
export function userIn(text: string): AskedUser | undefined {
  const id = idIn(text) ?? idInAddress('user', text);
  const name = text.replace(/^@/, '');
  return id ?? (isUserName(name) && !/^\d+$/.test(text) ? name : undefined);
}

export const userWords =
  'a user id, a user name (3 to 20 letters, digits or underscores; no display name), or the address of the profile page';

/** `undefined` if the text is not an id. */
export function idIn(text: string): number | undefined {
  const id = /^\d{1,16}$/.test(text) ? Number(text) : 0;
  return id > 0 && Number.isSafeInteger(id) ? id : undefined;
}

/** The place of the id in the addresses of each kind of page. */
const pages = {
  user: [/\/users\/(\d+)/],
  group: [/\/(?:communities|groups|share\/g)\/(\d+)/],
  place: [/\/places\/(\d+)/, /\/games\/(\d+)/, /[?&]placeid=(\d+)/i],
  experience: [/\/experiences\/(\d+)/],
};

/** The id in a pasted address of roblox.com; `undefined` if the text is no address of such a page. */
export function idInAddress(kind: keyof typeof pages, text: string): number | undefined {
  const [, path] = /^(?:https?:\/\/)?(?:[\w-]+\.)?roblox\.com(\/[^#]*)/i.exec(text.trim()) ?? [];
  if (path === undefined) return undefined;
  const [digits] = pages[kind].flatMap((page) => page.exec(path)?.[1] ?? []);
  const id = Number(digits);
  return id > 0 && Number.isSafeInteger(id) ? id : undefined;
}

/**
 * True for the address of an experience as a whole. Games do not send its id unless their script does so explicitly.
 */
export function namesExperience(text: string): boolean {
  return idInAddress('place', text) === undefined && idInAddress('experience', text) !== undefined;
}

export const experienceWords =
  "This address has the universe id, and games send the place id (game.PlaceId): open the place's own page, under Places, and give its address; or add all of its places with rankd whitelist add --experience";
