import { RankdError } from '../base/errors.ts';
import { type AuditMention, mentionsHash } from './audit.ts';
import { type Actor, erasureRequested, personForgotten, type Verdict } from './events.ts';
import { isOpenHold } from './holds.ts';
import type { ErasureRequest, Hold, RankChange } from './model.ts';

/** The records that name a person. */
export interface Mentions {
  /** The number of rank changes that name the person, as rankee or as ranker. */
  changes: number;
  /** The number of audit events that name the person. */
  events: number;
  /** True if a change that names the person has begun and not ended: its end could write the names again. */
  isOpen: boolean;
  /** True if any record names the person, also one that is neither a change nor an event. */
  isNamed: boolean;
}

/** A user and the pseudonym that replaces the user id. */
export interface ForgottenUser {
  userId: number;
  pseudonym: number;
}

/** The records that named the person, without the person. */
export interface WithoutPerson {
  change(change: RankChange): RankChange;
  hold(hold: Hold): Hold;
  /** A request of the person, which is done now. */
  erasure(request: ErasureRequest): ErasureRequest;
}

type ForgettingActor = ForgottenUser & { byPerson: readonly string[] };

/** Replaces texts that named a forgotten person. */
const forgottenText = 'It named a person who was forgotten.';

/**
 * Decides whether the person may be forgotten now, and returns the records without the person. `emptied`: the audit's
 * mentions of the person; `byPerson`: the names in history and audit for the person's actions in Discord.
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

/** A new request waits for the operator; one of a user whom no record names is done at once, and stored without the user. */
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
 * The change with the pseudonym in place of the person, and without texts that may contain the person's name. The
 * fingerprint of the request is removed, too: it is a hash over the names, so it could be found by guessing.
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

/** The suspension without the person. It no longer gives any roles back, because the user id is forgotten. */
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
