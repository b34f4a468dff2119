import { type ErrorCode, isRankdError, type RankdError } from '../base/errors.ts';
import { exponentialBackOff } from '../base/time.ts';
import { mayStillSucceed } from '../core/change-codes.ts';
import { refusalOfCredential } from '../core/credential.ts';
import { callWithin } from '../ports/platform.ts';
import type { Ranking } from './change/ranking.ts';

export interface Run<Member, Result> {
  results: Array<Member & Result>;
  /** Members without a result. */
  left: Member[];
  /** The error that ended the run early; `undefined` if the run finished or `stop` was aborted. */
  error: RankdError | undefined;
}

const concurrency = 4;
const maxTries = 6;
const maxWaitMs = 30_000;
const waitAfterMs = exponentialBackOff(1_000, maxWaitMs);
/** Errors that only an operator can fix, so retrying would not help. */
const forTheOperator = new Set<ErrorCode>(['platform_credential', 'config_invalid', 'configuration_misfit']);

export interface Act<Member, Result> {
  /** Throws a RankdError for a failure that is temporary or concerns all members. */
  act: (member: Member) => Promise<Result>;
  /** Returns the result for a refusal that concerns only one member. */
  refused: (error: RankdError) => Result;
}

/**
 * Runs the action on all members, a few at a time, and retries temporary failures. Stops early if failures persist, if
 * the platform refuses the credential, or if `stop` is aborted, but lets the attempts in flight finish.
 */
export async function runMany<Member, Result>(
  app: Ranking,
  { members, act }: { members: Member[]; act: Act<Member, Result> },
  { stop, report }: { stop: AbortSignal; report: (done: number) => void },
): Promise<Run<Member, Result>> {
  const run: Run<Member, Result> = { results: [], left: [], error: undefined };
  const failed = new AbortController();
  const halt = AbortSignal.any([stop, failed.signal]);
  const queue = members.values();
  const work = async () => {
    for (const member of queue) {
      const result = halt.aborted ? undefined : await actOn(app, { member, act, halt }).catch(giveUp);
      if (result === undefined) run.left.push(member);
      else run.results.push({ ...member, ...result });
      report(run.results.length);
    }
  };
  const giveUp = (error: unknown) => {
    if (!isRankdError(error)) throw error;
    run.error ??= error;
    failed.abort();
    return undefined;
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return run;
}

function actOn<Member, Result>(
  app: Ranking,
  { member, act: { act, refused }, halt }: { member: Member; act: Act<Member, Result>; halt: AbortSignal },
): Promise<Result | undefined> {
  const orRefused = async (error: unknown) => {
    if (isRankdError(error, 'platform_credential') && (await isAccepted(app))) return refused(error);
    throw error;
  };
  const work = async () => (halt.aborted ? undefined : await act(member).catch(orRefused));
  return withRetries(app, work, halt);
}

/** Retries temporary failures, with a backoff that `halt` cuts short. */
export async function withRetries<T>(
  { clock }: Pick<Ranking, 'clock'>,
  work: () => Promise<T>,
  halt?: AbortSignal,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      if (tries === maxTries || !isRankdError(error) || !mayStillSucceed(error.code) || forTheOperator.has(error.code))
        throw error;
      const waitMs = Math.min(Math.max(error.retryAfterMs ?? 0, waitAfterMs(tries - 1)), maxWaitMs);
      await clock.sleep(waitMs, halt).catch(() => undefined);
    }
  }
}

/** Checks whether the credential works: if it does, a refusal concerns only one member. */
async function isAccepted({ platform, clock, deadlineMs }: Ranking): Promise<boolean> {
  using call = callWithin(clock, deadlineMs, 'operator');
  const credential = await platform.checkCredential(call).catch(() => undefined);
  return credential !== undefined && credential.state === 'valid' && refusalOfCredential(credential) === undefined;
}
