import { isRankdError, type RankdError } from '../../base/errors.ts';
import { isoTime } from '../../base/time.ts';
import { newPseudonym } from '../../core/audit.ts';
import { judgeErasure, judgeForgetting, type Mentions, notNamed } from '../../core/forgetting.ts';
import type { ErasureRequest } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';

type StoreAndClock = Pick<Ports, 'store' | 'clock'>;

/** The number of changes and events that name a person, and the pseudonym that replaces the person in them. */
interface Forgotten extends Pick<Mentions, 'changes' | 'events'> {
  /** `undefined` in a dry run. */
  pseudonym: number | undefined;
}

/**
 * Removes a user's id and names from the history and the audit log. Throws `not_found` if no record names the user, and
 * `conflict` while a rank change that names the user is open. Awaits `agreed` before removing anything. A dry run only
 * counts the records.
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

/** Forgets the user, and completes the user's erasure requests in the same transaction. */
async function forget({ store, clock }: StoreAndClock, userId: number, by: string) {
  const forgetting = { userId, pseudonym: newPseudonym() };
  const judge = judgeForgetting(forgetting, { by, at: clock.now() });
  const { changes, events } = await store.forgetPerson(forgetting, judge);
  return { changes, events, pseudonym: forgetting.pseudonym };
}

/** `changes` and `events` count the records that were changed or, in a dry run, would be changed. */
export function forgottenDocument({ changes, events, pseudonym }: Forgotten) {
  return { dryRun: pseudonym === undefined, changes, events, pseudonym: pseudonym ?? null };
}

/**
 * Records an erasure request from the platform, unless it is already recorded. If `requestedAt` is NaN, uses the
 * current time.
 */
export async function receiveErasure(
  { store, clock }: StoreAndClock,
  { id, userId, requestedAt }: Pick<ErasureRequest, 'id' | 'userId' | 'requestedAt'>,
): Promise<ErasureRequest> {
  const receivedAt = clock.now();
  const request = { id, userId, requestedAt: Number.isNaN(requestedAt) ? receivedAt : requestedAt, receivedAt };
  const judge = judgeErasure(request, { by: 'roblox', at: receivedAt, pseudonym: newPseudonym() });
  return store.recordErasure(request, judge);
}

/** A user who asked to be forgotten, with the earliest request and the number of records that name the user. */
export interface Requester extends Pick<Mentions, 'changes' | 'events'> {
  userId: number;
  requestedAt: number;
  receivedAt: number;
  /** Set once the user has been forgotten. */
  pseudonym?: number;
  error?: RankdError;
}

/** Lists the users who asked to be forgotten, earliest request first. */
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

/**
 * Forgets these users. Sets `error` for each user who is named in an open change or was already forgotten by another
 * run.
 */
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
