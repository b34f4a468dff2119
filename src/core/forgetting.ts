import { RankdError } from '../base/errors.ts';
import { type AuditMention, mentionsHash } from './audit.ts';
import { type Actor, erasureRequested, personForgotten, type Verdict } from './events.ts';
import { isOpenHold } from './holds.ts';
import type { ErasureRequest, Hold, RankChange } from './model.ts';

export interface Mentions {
  /** The number of rank changes that name the person, including those requested from the person's Discord account. */
  changes: number;
  events: number;
  /** True if a change that names the person is still open; recording its outcome could store the name again. */
  isOpen: boolean;
  /** True if any record names the person, including records that are neither changes nor events. */
  isNamed: boolean;
}

export interface ForgottenUser {
  userId: number;
  pseudonym: number;
}

export interface WithoutPerson {
  change(change: RankChange): RankChange;
  hold(hold: Hold): Hold;
  /** Also marks the person's request as done. */
  erasure(request: ErasureRequest): ErasureRequest;
}

type ForgettingActor = ForgottenUser & { byPerson: readonly string[] };

/** Replaces any text that may name a forgotten person. */
const forgottenText = 'This text named a person who was forgotten.';

/**
 * Judges whether rankd can forget the person now. `emptied`: the audit log's mentions of the person. `byPerson`: the
 * names of the person's Discord accounts in the history and the audit log.
 */
export function judgeForgetting(
  forgetting: ForgottenUser,
  actor: Actor,
): (mentions: Mentions, emptied: readonly AuditMention[], byPerson: readonly string[]) => Verdict<WithoutPerson> {
  return ({ isOpen, isNamed, changes, events }, emptied, byPerson) => {
    if (!isNamed) return { refusal: notNamed(forgetting.userId) };
    if (isOpen) {
      return {
        refusal: new RankdError('conflict', `A rank change that names user ${forgetting.userId} is in progress.`, {
          hint: 'run the command again in a minute',
        }),
      };
    }
    return {
      change: {
        change: (change) => withoutPerson(change, { ...forgetting, byPerson }),
        hold: (hold) => holdWithout(hold, { ...forgetting, byPerson }, actor),
        erasure: (request) => ({ ...request, userId: forgetting.pseudonym, doneAt: actor.at }),
      },
      events: [
        personForgotten(
          forgetting.pseudonym,
          { changes, events, mentions: emptied.length, mentionsHash: mentionsHash(emptied) },
          actor,
        ),
      ],
    };
  };
}

export function notNamed(userId: number): RankdError {
  return new RankdError('not_found', `No record names user ${userId}.`, { hint: 'check the user id' });
}

/**
 * Judges a new erasure request. If any record names the user, the request waits for the operator. Otherwise, there is
 * nothing to erase, and the request is recorded as done, under a pseudonym.
 */
export function judgeErasure(
  request: ErasureRequest,
  { pseudonym, ...actor }: Actor & Pick<ForgottenUser, 'pseudonym'>,
): (isNamed: boolean) => Verdict<ErasureRequest> {
  return (isNamed) => {
    const change = isNamed ? request : { ...request, userId: pseudonym, doneAt: actor.at };
    return { change, events: [erasureRequested(change, actor)] };
  };
}

/**
 * Replaces the person with the pseudonym, and removes any text that may contain the name. Also removes the request's
 * fingerprint, a hash from which names could be guessed.
 */
function withoutPerson(change: RankChange, { userId, pseudonym, byPerson }: ForgettingActor): RankChange {
  const { command: _, reason: _reason, idempotencyKey: _key, fingerprint: _fingerprint, ...rest } = change;
  return {
    ...rest,
    message: forgottenText,
    ...(change.rankeeId === userId && { rankeeId: pseudonym, rankeeName: '' }),
    ...(change.rankerId === userId && { rankerId: pseudonym, rankerName: '' }),
    ...(byPerson.includes(change.by) && { rankerName: '' }),
  };
}

/**
 * Removes the person from the hold. Forfeits an open hold on the person, because no user id is left whose roles rankd
 * could restore.
 */
function holdWithout(hold: Hold, { userId, pseudonym, byPerson }: ForgettingActor, { at }: Actor): Hold {
  const { reason: _, ...rest } = hold;
  const isRankee = hold.rankeeId === userId;
  return {
    ...rest,
    message: forgottenText,
    ...(isRankee && { rankeeId: pseudonym, rankeeName: '' }),
    ...(isRankee && isOpenHold(hold) && { state: 'forfeited', endedAt: at }),
    ...(hold.rankerId === userId && { rankerId: pseudonym, rankerName: '' }),
    ...(byPerson.includes(hold.by) && { rankerName: '' }),
  };
}
