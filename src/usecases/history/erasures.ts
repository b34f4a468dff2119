import { isRankdError, type RankdError } from '../../base/errors.ts';
import { isoTime } from '../../base/time.ts';
import { newPseudonym } from '../../core/audit.ts';
import { judgeErasure, judgeForgetting, type Mentions } from '../../core/forgetting.ts';
import type { ErasureRequest } from '../../core/model.ts';
import type { Ports } from '../../ports/index.ts';

type StoreAndClock = Pick<Ports, 'store' | 'clock'>;

/** Records a request that the platform passed on, once. `requestedAt` may be NaN: then the present time counts. */
export async function receiveErasure(
  { store, clock }: StoreAndClock,
  { id, userId, requestedAt }: Pick<ErasureRequest, 'id' | 'userId' | 'requestedAt'>,
): Promise<ErasureRequest> {
  const receivedAt = clock.now();
  const request = { id, userId, requestedAt: Number.isNaN(requestedAt) ? receivedAt : requestedAt, receivedAt };
  return store.recordErasure(
    request,
    judgeErasure(request, { by: 'roblox', at: receivedAt, pseudonym: newPseudonym() }),
  );
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

/** The users who want to be forgotten, those whose request arrived first at the beginning. */
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

/** Forgets these users, each in one transaction that also ends their requests. A user whom an open change names is left out, and one whom another run has forgotten. */
export async function forgetRequesters(
  { store, clock }: StoreAndClock,
  requesters: Requester[],
  { by }: { by: string },
): Promise<Requester[]> {
  const results: Requester[] = [];
  for (const requester of requesters) {
    const forgetting = { userId: requester.userId, pseudonym: newPseudonym() };
    try {
      const { changes, events } = await store.forgetPerson(
        forgetting,
        judgeForgetting(forgetting, { by, at: clock.now() }),
      );
      results.push({ ...requester, changes, events, pseudonym: forgetting.pseudonym });
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
