import { isRankdError, type RankdError } from '../base/errors.ts';
import type { Surprise } from '../base/surprises.ts';
import { exponentialBackOff } from '../base/time.ts';
import { refusalOfCredential } from '../core/credential.ts';
import type { Credential, Group, Member, Role } from '../core/model.ts';
import type {
  CallContext,
  Clock,
  MemberList,
  Pace,
  Page,
  Platform,
  Reachability,
  Reservation,
  RoleWrite,
  WriteKind,
} from '../ports/index.ts';
import { withShare } from '../ports/platform.ts';
import { ForbiddenRead } from './upstream/platform-error.ts';

const probeAfterMs = exponentialBackOff(10_000, 60_000);
/** A refused call reuses a credential report that is younger than this. */
const checkLifeMs = 10_000;
/** The share of a call's remaining time allowed for a credential check. */
const checkShare = 0.25;

export interface CredentialBreakerOptions {
  platform: Platform;
  clock: Clock;
  /**
   * Called with the error when the credential stops working or the reason changes, and with `undefined` once it works
   * again.
   */
  report: (dead: RankdError | undefined) => void;
}

/**
 * A circuit breaker around a platform. It opens when the credential stops working, and then rejects every call that
 * needs the credential with `platform_credential`. At intervals, one call acts as a probe: it checks the credential
 * first, and is sent unless the platform reports that the credential is still dead. A refused write may concern a
 * single member, and a forbidden read the group alone, so neither opens the breaker unless the platform also reports
 * that the credential is dead or lacks the scope to write.
 */
export class CredentialBreaker implements Platform {
  readonly readLagMs: number;
  readonly #platform: Platform;
  readonly #clock: Clock;
  readonly #report: CredentialBreakerOptions['report'];
  #latest: Credential | undefined;
  /** Set when a write fails with `platform_credential`; cleared when a write succeeds. */
  #isWriteDenied = false;
  /** Until this time (on `Clock.monotonic()`), refused calls reuse `#latest` instead of requesting a new report. */
  #knownUntil = 0;
  #open: { error: RankdError; probeAt: number } | undefined;
  /**
   * The number of probes scheduled since a call last succeeded while the breaker was closed. A successful credential
   * check does not reset it, because calls may still be refused.
   */
  #probes = 0;
  #succeededAt = { read: 0, write: 0 };

  constructor({ platform, clock, report }: CredentialBreakerOptions) {
    this.readLagMs = platform.readLagMs;
    this.#platform = platform;
    this.#clock = clock;
    this.#report = report;
  }

  get writeMs(): number {
    return this.#platform.writeMs;
  }

  /** The error that calls currently fail with; `undefined` while the credential works. */
  get dead(): RankdError | undefined {
    return this.#open?.error;
  }

  /** The times of the last successful read and write, in epoch milliseconds; 0 if there was none. */
  get succeededAt(): { read: number; write: number } {
    return this.#succeededAt;
  }

  get latest(): Credential | undefined {
    return this.#latest;
  }

  group(call: CallContext): Promise<Group> {
    return this.#read(call, () => this.#platform.group(call));
  }

  roles(call: CallContext): Promise<Role[]> {
    return this.#read(call, () => this.#platform.roles(call));
  }

  role(roleId: number, call: CallContext): ReturnType<Platform['role']> {
    return this.#read(call, () => this.#platform.role(roleId, call));
  }

  getMember(userId: number, call: CallContext): Promise<Member | undefined> {
    return this.#read(call, () => this.#platform.getMember(userId, call));
  }

  membersWith(list: MemberList, call: CallContext): Promise<Page<number>> {
    return this.#read(call, () => this.#platform.membersWith(list, call));
  }

  /** Needs no credential. */
  findUser(name: string, call: CallContext): ReturnType<Platform['findUser']> {
    return this.#platform.findUser(name, call);
  }

  userName(userId: number, call: CallContext): Promise<string | undefined> {
    return this.#read(call, () => this.#platform.userName(userId, call));
  }

  /** Needs no credential. */
  placesOf(universeId: number, call: CallContext): ReturnType<Platform['placesOf']> {
    return this.#platform.placesOf(universeId, call);
  }

  reserve(kinds: WriteKind[], call: CallContext): Promise<Reservation> {
    return this.#platform.reserve(kinds, call);
  }

  assignRole(change: RoleWrite, call: CallContext): Promise<Member | undefined> {
    return this.#write(call, () => this.#platform.assignRole(change, call));
  }

  unassignRole(change: RoleWrite, call: CallContext): Promise<Member | undefined> {
    return this.#write(call, () => this.#platform.unassignRole(change, call));
  }

  /** While the breaker is open, throws its error without calling the platform until the next probe is due. */
  async checkCredential(call: CallContext): Promise<Credential> {
    const open = this.#open;
    if (open !== undefined) {
      if (this.#clock.monotonic() < open.probeAt) throw open.error;
      open.probeAt = this.#nextProbe();
    }
    const credential = await this.#platform.checkCredential(call);
    this.#latest = credential;
    this.#knownUntil = this.#clock.monotonic() + checkLifeMs;
    const refusal = refusalOfCredential(credential, this.#isWriteDenied);
    if (refusal !== undefined) this.#trip(refusal);
    else if (credential.state !== 'unreported') this.#close();
    return credential;
  }

  pace(): Pace[] {
    return this.#platform.pace();
  }

  reachability(): Reachability {
    return this.#platform.reachability();
  }

  surprises(): Surprise[] {
    return this.#platform.surprises();
  }

  close(): Promise<void> {
    return this.#platform.close();
  }

  async #read<T>(call: CallContext, work: () => Promise<T>): Promise<T> {
    try {
      const done = await this.#attempt(call, work);
      this.#succeededAt.read = this.#clock.now();
      return done;
    } catch (error) {
      if (error instanceof ForbiddenRead) await this.#askAfterRefusal(call);
      else if (isRankdError(error, 'platform_credential')) this.#trip(error);
      throw error;
    }
  }

  async #write<T>(call: CallContext, work: () => Promise<T>): Promise<T> {
    try {
      const done = await this.#attempt(call, work);
      this.#isWriteDenied = false;
      this.#succeededAt.write = this.#clock.now();
      return done;
    } catch (error) {
      if (isRankdError(error, 'platform_credential')) {
        this.#isWriteDenied = true;
        await this.#askAfterRefusal(call);
      }
      throw error;
    }
  }

  /**
   * Opens the breaker if the platform's report shows that the call was refused because of the credential. Requests a
   * new report if the latest one is too old.
   */
  async #askAfterRefusal(call: CallContext): Promise<void> {
    const now = this.#clock.monotonic();
    if (now >= this.#knownUntil) {
      this.#knownUntil = now + checkLifeMs; // set first, so that concurrent refusals cause only one request
      await this.#ask(call);
    } else if (this.#latest !== undefined) {
      const refusal = refusalOfCredential(this.#latest, this.#isWriteDenied);
      if (refusal !== undefined) this.#trip(refusal);
    }
  }

  /**
   * Runs `work`. While the breaker is open, throws its error instead, unless a probe is due and does not confirm that
   * the credential is dead. Closes the breaker if `work` then succeeds.
   */
  async #attempt<T>(call: CallContext, work: () => Promise<T>): Promise<T> {
    const isDead = this.#open !== undefined;
    if (isDead) {
      const refusal = await this.#ask(call);
      if (refusal !== undefined) throw refusal;
    }
    const done = await work();
    if (isDead) this.#close();
    else if (this.#open === undefined) this.#probes = 0;
    return done;
  }

  async #ask(call: CallContext): Promise<RankdError | undefined> {
    try {
      return refusalOfCredential(
        await this.checkCredential(withShare(call, { clock: this.#clock, share: checkShare })),
        this.#isWriteDenied,
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
    const probeAt = this.#clock.monotonic() + probeAfterMs(this.#probes);
    this.#probes += 1;
    return probeAt;
  }

  #close(): void {
    if (this.#open === undefined) return;
    this.#open = undefined;
    this.#report(undefined);
  }
}
