import { abortable } from '../../base/clock.ts';
import { RankdError } from '../../base/errors.ts';
import type { Surprise, Surprises } from '../../base/surprises.ts';
import type { RankChange } from '../../core/model.ts';
import { type SideEffects, type Streaks, streaksAfter } from '../../core/steps.ts';

export const changeSurprises = ['not_held', 'held_though_refused', 'role_vanished', 'role_appeared'];

/**
 * An event that needs the operator's attention. `facts.problem` is set if the problem lasts until a late read agrees or
 * the configuration is reloaded.
 */
export interface Alarm {
  level: 'warn' | 'error';
  message: string;
  facts: Record<string, unknown>;
}

/** A scheduled read of the member, made once reads can no longer lag, to verify the reported outcome of a change. */
export interface LateRead {
  /** The change as reported if it was applied; if Roblox refused it, the intent with the target roles. */
  change: RankChange;
  /** A time on `Clock.monotonic()`. */
  dueAt: number;
  tries: number;
  /** The number of reloads before this read was scheduled. */
  generation: number;
}

/** True if the change was reported as applied. Only such changes show whether success responses can be trusted. */
export function isOfApplied({ change }: LateRead): boolean {
  return change.state === 'applied';
}

/** After this many consecutive changes with unexpected effects, no more changes begin. */
const maxStreak = 3;
/**
 * One in this many applied changes gets a late read, in addition to every demotion and the first change after a start
 * or reload.
 */
const sampleSize = 20;
/**
 * The maximum number of pending late reads. Any more are dropped, because they would come too late to prove anything.
 * Refusals have a separate limit, because a script can cause any number of them.
 */
const maxReads = { applied: 1_000, refused: 100 };

/**
 * The outcome for a change whose write may have reached the platform late. `superseded` means that the member has a
 * newer change.
 */
export type LateWriteOutcome = 'reopened' | 'superseded' | 'unknown';

/** Tracks whether this process trusts the platform's responses, and which changes need a late read. */
export class PlatformTrust {
  readonly #report: (alarm: Alarm) => void;
  readonly #surprises: Surprises;
  #reads: LateRead[] = [];
  #scheduled = Promise.withResolvers<void>();
  #changes = 0;
  #generation = 0;
  /**
   * True if a late read has agreed since the process started, since the last reload, and since a read last contradicted
   * Roblox.
   */
  #isProven = false;
  #isDoubted = false;
  #streaks: Streaks = { vanished: 0, appeared: 0 };
  #stop: RankdError | undefined;

  constructor(surprises: Surprises, report: (alarm: Alarm) => void) {
    this.#surprises = surprises;
    this.#report = report;
  }

  /**
   * False after a read has contradicted a response. Every effect must then be confirmed by a read, until a late read
   * agrees.
   */
  get believesAnswers(): boolean {
    return !this.#isDoubted;
  }

  /** The reason why no change can begin; `undefined` if changes can begin. */
  get stop(): RankdError | undefined {
    return this.#stop;
  }

  get surprises(): Surprise[] {
    return this.#surprises.list();
  }

  /**
   * Lifts the stop, and requires a late read of the next applied change. Called after a reload, which may have changed
   * the key.
   */
  renew(): void {
    this.#generation += 1;
    this.#isProven = false;
    this.#streaks = { vanished: 0, appeared: 0 };
    this.#stop = undefined;
  }

  /** Stops trusting responses if the running daemon does not trust them. */
  adoptDoubt({ believesAnswers }: { believesAnswers: boolean }): void {
    if (!believesAnswers) this.#isDoubted = true;
  }

  /**
   * Schedules a late read of every demotion and of every twentieth applied change. Until a late read has agreed, also
   * ensures that one scheduled since the last reload is pending.
   */
  noteApplied(change: RankChange, dueAt: number): void {
    this.#changes += 1;
    const isFirst =
      !this.#isProven && this.#reads.every((read) => !isOfApplied(read) || read.generation < this.#generation);
    if (isFirst || change.demotion || this.#changes % sampleSize === 0) this.addRead(change, dueAt);
  }

  /** Schedules a late read of the change for `dueAt` (on `Clock.monotonic()`), unless too many are pending. */
  addRead(change: RankChange, dueAt: number): void {
    const read = { change, dueAt, tries: 0, generation: this.#generation };
    const sameKind = this.#reads.filter((other) => isOfApplied(other) === isOfApplied(read));
    if (sameKind.length >= (isOfApplied(read) ? maxReads.applied : maxReads.refused)) return;
    this.#reads.push(read);
    this.#scheduled.resolve();
  }

  get reads(): readonly LateRead[] {
    return this.#reads;
  }

  /** Returns the late read that is due first, waiting until there is one. Rejects if `signal` is aborted. */
  async nextRead(signal: AbortSignal): Promise<LateRead> {
    while (this.#reads.length === 0) await abortable(this.#scheduled.promise, signal);
    return this.#reads.reduce((first, read) => (read.dueAt < first.dueAt ? read : first));
  }

  endRead(read: LateRead): void {
    this.#reads = this.#reads.filter((other) => other !== read);
    if (this.#reads.length === 0) this.#scheduled = Promise.withResolvers();
  }

  noteLost(userId: number, roleId: number): void {
    const what = 'a role that Roblox had confirmed was gone a moment later in the same change; rankd assigns it again';
    this.#distrust('not_held', what, { rankeeId: userId, roleId });
  }

  /**
   * Records that a late read agreed with the outcome. A read scheduled before a reload proves nothing about the new
   * key.
   */
  noteAgreement({ generation }: LateRead): void {
    if (generation === this.#generation) this.#isProven = true;
    this.#isDoubted = false;
  }

  noteDisagreement(read: LateRead, held: number[]): void {
    const { id, rankeeId, rolesBefore, rolesAfter } = read.change;
    const isHeld = !isOfApplied(read);
    const facts = { changeId: id, rankeeId, said: isHeld ? rolesBefore : rolesAfter, held };
    const what = isHeld
      ? 'Roblox shows a change that it had refused (or someone made it by hand); rankd reconciles it again'
      : 'Roblox does not show a change that it had confirmed (or someone undid it by hand); rankd reconciles it again';
    this.#distrust(isHeld ? 'held_though_refused' : 'not_held', what, facts);
  }

  reportLateWrite({ id, rankeeId }: RankChange, outcome: LateWriteOutcome): void {
    const result = {
      reopened: 'rankd reconciles the change again',
      superseded: "the member has a newer change, so check the member's roles",
      unknown: "the outcome is unknown, so check the member's roles",
    }[outcome];
    const message = `this process stalled, and its write for member ${rankeeId} may have reached Roblox late; ${result}`;
    this.#report({ level: 'warn', message, facts: { changeId: id, rankeeId } });
  }

  #distrust(surprise: string, what: string, facts: Alarm['facts']): void {
    this.#isProven = false;
    this.#isDoubted = true;
    this.#surprises.note('change', surprise);
    const message = `${what}, and does not trust Roblox's responses to writes until a later read agrees`;
    this.#report({ level: 'error', message, facts: { ...facts, problem: 'trust' } });
  }

  noteSideEffects(userId: number, effects: SideEffects): void {
    const { vanished, appeared } = effects;
    this.#streaks = streaksAfter(this.#streaks, effects);
    if (vanished.length === 0 && appeared.length === 0) return;
    if (vanished.length > 0) this.#surprises.note('change', 'role_vanished');
    if (appeared.length > 0) this.#surprises.note('change', 'role_appeared');
    const message = 'the member lost or gained roles that the change did not name';
    this.#report({ level: 'warn', message, facts: { rankeeId: userId, vanished, appeared } });
    if (this.#stop === undefined && Math.max(this.#streaks.vanished, this.#streaks.appeared) >= maxStreak) this.#halt();
  }

  #halt(): void {
    this.#stop = new RankdError(
      'platform_unavailable',
      `Roblox behaves unexpectedly: in ${maxStreak} changes in a row, members lost or gained roles that the changes did not name. rankd changes no rank until you reload the configuration.`,
      { hint: 'check the log, give members back the roles that they lost, then: rankd reload' },
    );
    this.#report({ level: 'error', message: this.#stop.message, facts: { hint: this.#stop.hint, problem: 'trust' } });
  }
}
