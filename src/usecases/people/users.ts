import { isRankdError, RankdError } from '../../base/errors.ts';
import type { NamedUser } from '../../core/model.ts';
import { refusalOfPreviousName } from '../../core/user-ref.ts';
import type { CallContext, Ports } from '../../ports/index.ts';
import { callWithin, withShare } from '../../ports/platform.ts';

/** Returns the user who currently has this name. Throws `user_not_found`, `user_renamed`, and the platform's errors. */
export async function findUser(ports: StoreAndPlatform, name: string, call: CallContext): Promise<NamedUser> {
  const user = (await knownUser(ports, name, call)) ?? (await ports.platform.findUser(name, call));
  if (user === undefined) {
    throw new RankdError('user_not_found', `No user is called ${name}.`, {
      hint: 'give the user name, not the display name, or give the user id, the number in the address of the profile page',
    });
  }
  const refusal = refusalOfPreviousName(name, user);
  if (refusal !== undefined) throw refusal;
  return user;
}

type StoreAndPlatform = Pick<Ports, 'store' | 'platform' | 'clock'>;

/**
 * Returns the user who has this name in the store, if the platform confirms that the name is current. Two users never
 * share a name, so the id is correct even if the store has outdated names.
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

/** The maximum number of users from the store whose names are checked with the platform. */
const maxKnown = 3;

/** A stored name is used for at most this long, because users can change their names. */
const nameLifeMs = 24 * 3_600_000;
/** Each round considers this many of the newest changes. */
const maxChanges = 200;
const timeoutMs = 5_000;

/** Looks up, for display, the names of members whom callers did not name. Never delays a change. */
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

export async function namesOf(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  userIds: number[],
): Promise<Map<number, string>> {
  return store.userNames([...new Set(userIds)], { since: clock.now() - nameLifeMs });
}

/** Returns the names of users who are linked to Discord users. A name that comes from the history may be outdated. */
export async function namesOfLinked(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  userIds: number[],
): Promise<Map<number, string>> {
  return new Map([...(await store.linkedNames(userIds)), ...(await namesOf({ store, clock }, userIds))]);
}

export async function userNameOf(
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

/** Returns the user's name, or `undefined` if the platform does not know it or the lookup fails. */
export function userNameIfKnown(
  { platform }: Pick<Ports, 'platform'>,
  userId: number,
  call: CallContext,
): Promise<string | undefined> {
  return platform.userName(userId, call).catch(() => undefined);
}
