import { isRankdError, RankdError } from '../../base/errors.ts';
import { refusalOfPreviousName } from '../../core/asked-user.ts';
import type { NamedUser } from '../../core/model.ts';
import type { CallContext, Ports } from '../../ports/index.ts';
import { callWithin, withShare } from '../../ports/platform.ts';

/** Returns the user with this current name. Throws `user_not_found`, `user_renamed`, and the platform's errors. */
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
 * Returns the user who has this name in the history, if the platform confirms that it is the user's current name. Two
 * users never share a name, so the id is correct even if the history is outdated.
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

/** The maximum number of users from the history to check. */
const maxKnown = 3;

/** A stored name is shown for this long, because users can change their names. */
const nameLifeMs = 24 * 3_600_000;
/** The number of newest changes that a round considers. */
const maxChanges = 200;
const timeoutMs = 5_000;

/** Looks up the names of members whom callers did not name, for display. It never delays a change. */
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

/** Returns the stored names of these users, by id. */
export async function namesOf(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  userIds: number[],
): Promise<Map<number, string>> {
  return store.userNames([...new Set(userIds)], { since: clock.now() - nameLifeMs });
}

/** Returns the names of users who are linked to people in Discord. Names from the history can be outdated. */
export async function namesOfLinked(
  { store, clock }: Pick<Ports, 'store' | 'clock'>,
  userIds: number[],
): Promise<Map<number, string>> {
  return new Map([...(await store.linkedNames(userIds)), ...(await namesOf({ store, clock }, userIds))]);
}

/** Returns the user's stored name, or looks it up on the platform and stores it. `undefined` if neither has it. */
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

/** Returns the user's name; `undefined` if the platform does not return it now. */
export function userNameIfKnown(
  { platform }: Pick<Ports, 'platform'>,
  userId: number,
  call: CallContext,
): Promise<string | undefined> {
  return platform.userName(userId, call).catch(() => undefined);
}
