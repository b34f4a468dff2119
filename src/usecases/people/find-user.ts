import { RankdError } from '../../base/errors.ts';
import { type NamedUser, refusalOfPreviousName } from '../../core/user-name.ts';
import type { CallContext, Ports } from '../../ports/index.ts';

/** The user with this present name. Throws `user_not_found`, `user_renamed`, and the platform's errors. */
export async function findUser(
  { platform }: Pick<Ports, 'platform'>,
  name: string,
  call: CallContext,
): Promise<NamedUser> {
  const user = await platform.findUser(name, call);
  if (user === undefined) {
    throw new RankdError('user_not_found', `No user is called ${name}.`, {
      hint: 'give the user name, not the display name; or the user id, the number in the address of the profile page',
    });
  }
  const refusal = refusalOfPreviousName(name, user);
  if (refusal !== undefined) throw refusal;
  return user;
}
