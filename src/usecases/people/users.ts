import { isRankdError, RankdError } from '../../base/errors.ts';
import { refusalOfPreviousName } from '../../core/asked-user.ts';
import type { NamedUser } from '../../core/model.ts';
import type { CallContext, Ports } from '../../ports/index.ts';
import { callWithin, withShare } from '../../ports/platform.ts';

/** The user with this present name. Throws `user_not_found`, `user_renamed`, and the platform's errors. */
export async function findUser(ports: StoreAndPlatform, name: string, call: CallContext): Promise<NamedUser> {
  const user = (await knownUser(ports, name, call)) ?? (await ports.platform.findUser(name, call));
  if (user === undefined) {
    throw new RankdError('user_not_found', `No user is called ${name}.`, {
      hint: 'give the user name, not the display name; or the user id, the number in the address of the profile page',
    });
  }
  const refusal = refusalOfPreviousName(name, user);
  if (refusal !== undefined) throw refusal;
  return user;
}

type StoreAndPlatform = Pick<Ports, 'store' | 'platform' | 'clock'>;

/**
 * The user who has this name in the history, where a game or an earlier look-up stored it, if the platform reports it as the user's present
 * name. No two users have the same name at a time, so the id is certain even if the name in the history was wrong or has changed hands.
 */
async function knownUser(
  { store, platform, clock }: StoreAndPlatform,
  name: string,
  call: CallContext,
): Promise<NamedUser | undefined> {
  const short = withShare(call, { clock, share: 0.3 });
  for (const id of await store.usersNamed(name, { limit: maxKnown })) {
    const present = await userNameIfKnown({ platform }, id, short);
    if (present?.toLowerCase() === name.toLowerCase()) return { id, name: present };
  }
  return undefined;
}

/** A name that several users had is looked up on the platform. */
const maxKnown = 3;

/** A name is shown for this long, because users can change theirs. */
const nameLifeMs = 24 * 3_600_000;
/** A round reads at most this many of the newest changes. */
const maxChanges = 200;
const timeoutMs = 5_000;

/** Looks up the names of members without a given name on the platform, for display. It never delays a change. */
export async function nameMembers({ store, platform, clock }: Ports, stop: AbortSignal): Promise<void> {
  const since = clock.now() - nameLifeMs;
  for (const id of await store.unnamedMembers({ since, limit: maxChanges })) {
    using call = callWithin(clock, timeoutMs, 'display');
    const signal = AbortSignal.any([call.signal, stop]);
    try {
      const name = await platform.userName(id, { ...call, signal });
      await store.storeUserName({ id, name, at: clock.now() }, { since });
    } catch (error) {
      if (stop.aborted || isRankdError(error)) return; // the next round retries
      throw error;
    }
  }
}

/** The known names of these users. */
export async function namesOf(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  userIds: number[],
): Promise<Map<number, string>> {
  return store.userNames([...new Set(userIds)], { since: clock.now() - nameLifeMs });
}

/** The same of users who are linked to people in Discord; a name from the history can be old. */
export async function namesOfLinked(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  userIds: number[],
): Promise<Map<number, string>> {
  return new Map([...(await store.linkedNames(userIds)), ...(await namesOf({ store, clock }, userIds))]);
}

/** The user's name, as stored or as the platform reports it; then it is stored. `undefined` if neither has it now. */
export async function nameOf(
  { store, platform, clock }: Pick<Ports, 'store' | 'platform' | 'clock'>,
  userId: number,
  call: CallContext,
): Promise<string | undefined> {
  const stored = (await namesOf({ store, clock }, [userId])).get(userId);
  if (stored !== undefined) return stored;
  const name = await userNameIfKnown({ platform }, userId, call);
  if (name !== undefined)
    await store
      .storeUserName({ id: userId, name, at: clock.now() }, { since: clock.now() - nameLifeMs })
      .catch(() => undefined);
  return name;
}

/** The user's name, unless the platform does not return it now. */
export function userNameIfKnown(
  { platform }: Pick<Ports, 'platform'>,
  userId: number,
  call: CallContext,
): Promise<string | undefined> {
  return platform.userName(userId, call).catch(() => undefined);
}
