import { isRankdError, type RankdError } from '../../base/errors.ts';
import { isoTime } from '../../base/time.ts';
import { newPseudonym } from '../../core/audit.ts';
import { judgeErasure, judgeForgetting, type Mentions, notNamed } from '../../core/forgetting.ts';
import type { ErasureRequest } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';

type StoreAndClock = Pick<Ports, 'store' | 'clock'>;

/** The number of a person's records, and the pseudonym that replaces the person from now on. */
interface Forgotten extends Pick<Mentions, 'changes' | 'events'> {
  /** `undefined` in a dry run, which does nothing. */
  pseudonym: number | undefined;
}

/**
 * Removes a user's id and names from history and audit. Throws `not_found` if no record names the user, and `conflict`
 * while a rank change that names the user is running. Calls `agreed` before it does anything.
 */
export async function forgetPerson(
  ports: StoreAndClock,
  { userId, by, dryRun }: { userId: number; by: string; dryRun: boolean },
  agreed: (mentions: Mentions) => Promise<void>,
): Promise<Forgotten> {
  const mentions = await ports.store.mentionsOf(userId);
  if (!mentions.isNamed) throw notNamed(userId);
  if (dryRun) return { ...mentions, pseudonym: undefined };
  await agreed(mentions);
  return forget(ports, userId, by);
}

/** Also ends the user's requests, in the same transaction. */
async function forget({ store, clock }: StoreAndClock, userId: number, by: string) {
  const forgetting = { userId, pseudonym: newPseudonym() };
  const judge = judgeForgetting(forgetting, { by, at: clock.now() });
  const { changes, events } = await store.forgetPerson(forgetting, judge);
  return { changes, events, pseudonym: forgetting.pseudonym };
}

/** The number of records of a person that were, or would be, changed; `pseudonym` is null in a dry run. */
export function forgottenDocument({ changes, events, pseudonym }: Forgotten) {
  return { dryRun: pseudonym === undefined, changes, events, pseudonym: pseudonym ?? null };
}

/** Records a request that the platform passed on, once. `requestedAt` may be NaN: then the present time counts. */
export async function receiveErasure(
  { store, clock }: StoreAndClock,
  { id, userId, requestedAt }: Pick<ErasureRequest, 'id' | 'userId' | 'requestedAt'>,
): Promise<ErasureRequest> {
  const receivedAt = clock.now();
  const request = { id, userId, requestedAt: Number.isNaN(requestedAt) ? receivedAt : requestedAt, receivedAt };
  const judge = judgeErasure(request, { by: 'roblox', at: receivedAt, pseudonym: newPseudonym() });
  return store.recordErasure(request, judge);
}

/** A user who wants to be forgotten, with the earliest request, and the records that name the user. */
export interface Requester extends Pick<Mentions, 'changes' | 'events'> {
  userId: number;
  requestedAt: number;
  receivedAt: number;
  /** Once forgotten. */
  pseudonym?: number;
  /** The reason why the user can't be forgotten now. */
  error?: RankdError;
}

/** The users who want to be forgotten, earliest request first. */
export async function listRequesters({ store }: Pick<Ports, 'store'>): Promise<Requester[]> {
  const byUser = Map.groupBy(await store.waitingErasures(), ({ userId }) => userId);
  return Promise.all(
    [...byUser].map(async ([userId, requests]) => {
      const { changes, events } = await store.mentionsOf(userId);
      const requestedAt = Math.min(...requests.map((one) => one.requestedAt));
      return { userId, requestedAt, receivedAt: requests[0]?.receivedAt ?? requestedAt, changes, events };
    }),
  );
}

/** Forgets these users, except those whom an open change names, and those whom another run has forgotten: they get an `error`. */
export async function forgetRequesters(
  ports: StoreAndClock,
  requesters: Requester[],
  { by }: { by: string },
): Promise<Requester[]> {
  const results: Requester[] = [];
  for (const requester of requesters) {
    try {
      results.push({ ...requester, ...(await forget(ports, requester.userId, by)) });
    } catch (error) {
      if (!isRankdError(error, 'conflict', 'not_found')) throw error;
      results.push({ ...requester, error });
    }
  }
  return results;
}

export function requesterDocument({ requestedAt, receivedAt, pseudonym, error, ...requester }: Requester) {
  return {
    ...requester,
    ...{ requestedAt: isoTime(requestedAt), receivedAt: isoTime(receivedAt) },
    ...{ pseudonym: pseudonym ?? null, error: error?.message ?? null },
  };
}
