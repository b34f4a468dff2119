import { RankdError } from '../base/errors.ts';

/** A user of the platform, by the name that the user has now. */
export interface NamedUser {
  id: number;
  name: string;
}

/** True for 3 to 20 letters, digits and underscores: no user name has anything else. Display names may, but no two users differ by them. */
export function isUserName(text: string): boolean {
  return /^[A-Za-z0-9_]{3,20}$/.test(text);
}

/**
 * The refusal if the user was only once called what was asked for. The platform finds users by previous names too, but such a name
 * may be meant for whoever takes it next, and to rank the wrong person is worse than to ask once more.
 */
export function refusalOfPreviousName(asked: string, { id, name }: NamedUser): RankdError | undefined {
  if (name.toLowerCase() === asked.toLowerCase()) return undefined;
  return new RankdError('user_renamed', `${name} (${id}) was once called ${asked}: give ${id} or @${name}.`, {
    hint: `check on Roblox who is meant, then give ${id} or @${name}`,
  });
}
