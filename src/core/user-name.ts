import { RankdError } from '../base/errors.ts';

/** A platform user, by present name. */
export interface NamedUser {
  id: number;
  name: string;
}

/**
 * True for 3 to 20 letters, digits and underscores, as in all user names. Display names may have other characters, but
 * no two users differ by them.
 */
export function isUserName(text: string): boolean {
  return /^[A-Za-z0-9_]{3,20}$/.test(text);
}

/**
 * The refusal if the given name is only a previous name of the user. The platform also finds users by previous names,
 * but another user may take such a name, and ranking the wrong person is worse than an extra question.
 */
export function refusalOfPreviousName(asked: string, { id, name }: NamedUser): RankdError | undefined {
  if (name.toLowerCase() === asked.toLowerCase()) return undefined;
  return new RankdError('user_renamed', `${name} (${id}) was once called ${asked}: give ${id} or @${name}.`, {
    hint: `check on Roblox which user you mean, then give ${id} or @${name}`,
  });
}
