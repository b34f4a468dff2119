import { isRankdError, RankdError } from '../../base/errors.ts';
import { doubling } from '../../base/time.ts';
import type { Member } from '../../core/model.ts';
import { hasTakenEffect, type Step } from '../../core/steps.ts';
import type { CallContext, Ports } from '../../ports/index.ts';
import { outcomeUnknown } from './change-outcome.ts';

/** How far the steps got: `seen` are the roles (ids) seen last, `done` the steps that took effect before the refused one. */
export type Progress =
  | { kind: 'done'; seen: number[] }
  | { kind: 'refused'; done: Step[]; error: RankdError }
  | { kind: 'unknown'; error: RankdError };

const lookAfterMs = doubling(150, 2_000);

export interface StepRun {
  userId: number;
  steps: Step[];
  /** When every read shows rankd's last write, on `Clock.monotonic()`. It is called only if the answer to a write did not show its effect. */
  readsReliableFrom(): Promise<number>;
}

/** Writes the steps in order. Each is seen to have taken effect before the next begins. */
export async function carryOut(
  ports: Pick<Ports, 'platform' | 'clock'>,
  { userId, steps, readsReliableFrom }: StepRun,
  call: CallContext,
): Promise<Progress> {
  const done: Step[] = [];
  let seen: number[] = [];
  for (const step of steps) {
    try {
      seen = await executeStep(ports, { userId, step, readsReliableFrom }, call);
    } catch (cause) {
      const error = cause instanceof RankdError ? cause : outcomeUnknown(cause);
      return error.code === 'outcome_unknown' ? { kind: 'unknown', error } : { kind: 'refused', done, error };
    }
    done.push(step);
  }
  return { kind: 'done', seen };
}

/** Returns the roles (ids) that show the effect. Throws `outcome_unknown` if it can't be confirmed; any other RankdError means that there is none. */
async function executeStep(
  { platform, clock }: Pick<Ports, 'platform' | 'clock'>,
  { userId, step, readsReliableFrom }: Omit<StepRun, 'steps'> & { step: Step },
  call: CallContext,
): Promise<number[]> {
  const write = { userId, roleId: step.roleId };
  let answer: Member | undefined;
  try {
    answer = await (step.kind === 'assign' ? platform.assignRole(write, call) : platform.unassignRole(write, call));
  } catch (error) {
    if (!isRankdError(error, 'outcome_unknown')) throw error;
  }
  if (answer !== undefined && hasTakenEffect(step, answer.roleIds)) return answer.roleIds;
  const answeredAt = clock.monotonic();
  const provesAt = await readsReliableFrom();
  for (let looks = 0; ; looks += 1) {
    const readAt = clock.monotonic();
    const seen = await platform.getMember(userId, call).catch(() => undefined); // a read that fails decides nothing
    if (seen !== undefined && hasTakenEffect(step, seen.roleIds) && readAt >= provesAt) return seen.roleIds;
    const isPastLag = seen !== undefined && readAt - answeredAt >= platform.readLagMs;
    if (isPastLag && answer !== undefined) throw withoutEffect();
    await clock.sleep(lookAfterMs(looks), call.signal).catch((cause) => {
      throw outcomeUnknown(cause);
    });
  }
}

/** Roblox has been seen to answer 200 to a key without `group:write` and to change nothing. */
function withoutEffect(): RankdError {
  return new RankdError(
    'platform_credential',
    'The platform accepted the change but did not carry it out; the key rankd acts with probably lacks group:write.',
    { hint: 'give the Open Cloud key the scope group:write for this group; `rankd group show` checks it' },
  );
}
