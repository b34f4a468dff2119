import { isRankdError, type RankdError } from '../base/errors.ts';
import { refusalOfCredential } from '../core/credential.ts';
import type { Credential, Group, Member, Role } from '../core/model.ts';
import { withShare } from '../ports/call-context.ts';
import type { CallContext, Clock, Pace, Platform, RoleWrite, Room, WriteKind } from '../ports/index.ts';

const firstProbeMs = 10_000;
const maxProbeMs = 60_000;
/** What the platform said of the credential holds for so long where a single write was turned away. */
const checkLifeMs = 10_000;
/** Of the time a call has left: it goes on where the check can't be made. */
const checkShare = 0.25;

export interface CredentialBreakerOptions {
  platform: Platform;
  clock: Clock;
  /** Told when the credential is found dead, or dead for another reason, and once (`undefined`) when it works again. */
  report: (dead: RankdError | undefined) => void;
}

/**
 * A platform that stops calling once its credential is dead: every call is refused at once with `platform_credential`, and
 * now and then one of them asks the platform whether the credential works again; where the platform can't say, that call is
 * the trial. A write that is turned away may be about one member alone: it stops the others only where the platform says
 * that the credential is dead.
 */
export class CredentialBreaker implements Platform {
  readonly readLagMs: number;
  readonly #platform: Platform;
  readonly #clock: Clock;
  readonly #report: CredentialBreakerOptions['report'];
  #latest: Credential | undefined;
  /** On `Clock.monotonic()`: until then what the platform said of the credential need not be asked again. */
  #knownUntil = 0;
  #open: { error: RankdError; probeAt: number } | undefined;
  /** Grows with every probe, until a call has gone through: a check may pass though calls are still turned away. */
  #waitMs = firstProbeMs;

  constructor({ platform, clock, report }: CredentialBreakerOptions) {
    this.readLagMs = platform.readLagMs;
    this.#platform = platform;
    this.#clock = clock;
    this.#report = report;
  }

  /** Why nothing is called at present; `undefined` while the credential works. */
  get dead(): RankdError | undefined {
    return this.#open?.error;
  }

  /** What the platform said of the credential when it was last asked. */
  get latest(): Credential | undefined {
    return this.#latest;
  }

  group(call: CallContext): Promise<Group> {
    return this.#read(call, () => this.#platform.group(call));
  }

  roles(call: CallContext): Promise<Role[]> {
    return this.#read(call, () => this.#platform.roles(call));
  }

  getMember(userId: number, call: CallContext): Promise<Member | undefined> {
    return this.#read(call, () => this.#platform.getMember(userId, call));
  }

  reserveRoom(kinds: WriteKind[], call: CallContext): Promise<Room> {
    return this.#platform.reserveRoom(kinds, call);
  }

  assignRole(change: RoleWrite, call: CallContext): Promise<Member> {
    return this.#write(call, () => this.#platform.assignRole(change, call));
  }

  unassignRole(change: RoleWrite, call: CallContext): Promise<Member> {
    return this.#write(call, () => this.#platform.unassignRole(change, call));
  }

  /** Between two probes a dead credential is not asked about again: throws why it is dead. */
  async checkCredential(call: CallContext): Promise<Credential> {
    const open = this.#open;
    if (open !== undefined) {
      if (this.#clock.monotonic() < open.probeAt) throw open.error;
      open.probeAt = this.#nextProbe();
    }
    const credential = await this.#platform.checkCredential(call);
    this.#latest = credential;
    this.#knownUntil = this.#clock.monotonic() + checkLifeMs;
    const refusal = refusalOfCredential(credential);
    if (refusal === undefined) this.#close();
    else this.#trip(refusal);
    return credential;
  }

  pace(): Pace[] {
    return this.#platform.pace();
  }

  close(): Promise<void> {
    return this.#platform.close();
  }

  async #read<T>(call: CallContext, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#tried(call, work);
    } catch (error) {
      if (isRankdError(error, 'platform_credential')) this.#trip(error);
      throw error;
    }
  }

  async #write<T>(call: CallContext, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#tried(call, work);
    } catch (error) {
      const now = this.#clock.monotonic();
      if (isRankdError(error, 'platform_credential') && now >= this.#knownUntil) {
        this.#knownUntil = now + checkLifeMs; // whoever is turned away meanwhile need not ask as well
        await this.#ask(call);
      }
      throw error;
    }
  }

  /** Refused at once while the credential is dead; what goes through nevertheless shows that it works again. */
  async #tried<T>(call: CallContext, work: () => Promise<T>): Promise<T> {
    const isDead = this.#open !== undefined;
    if (isDead) {
      const refusal = await this.#ask(call);
      if (refusal !== undefined) throw refusal;
    }
    const done = await work();
    if (isDead) this.#close();
    else if (this.#open === undefined) this.#waitMs = firstProbeMs;
    return done;
  }

  /** Why the credential is of no use; `undefined` where it is, or where the platform does not say. */
  async #ask(call: CallContext): Promise<RankdError | undefined> {
    try {
      return refusalOfCredential(
        await this.checkCredential(withShare(call, { clock: this.#clock, share: checkShare })),
      );
    } catch (error) {
      return isRankdError(error, 'platform_credential') ? error : undefined;
    }
  }

  #trip(error: RankdError): void {
    const before = this.#open;
    this.#open = { error, probeAt: before?.probeAt ?? this.#nextProbe() };
    if (before?.error.message !== error.message) this.#report(error);
  }

  #nextProbe(): number {
    const probeAt = this.#clock.monotonic() + this.#waitMs;
    this.#waitMs = Math.min(this.#waitMs * 2, maxProbeMs);
    return probeAt;
  }

  #close(): void {
    if (this.#open === undefined) return;
    this.#open = undefined;
    this.#report(undefined);
  }
}
