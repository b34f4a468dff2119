import { refusalOfCredential } from '../core/credential.ts';
import type { Credential, Group, Member, Role } from '../core/model.ts';
import { isRankdError, type RankdError } from '../errors.ts';
import type { CallContext, Clock, Platform, RoleWrite } from '../ports.ts';

const firstProbeMs = 10_000;
const longestProbeMs = 300_000;

export interface CredentialBreakerOptions {
  platform: Platform;
  clock: Clock;
  /** Told once when the credential is found dead, and once (`undefined`) when it works again. */
  report: (dead: RankdError | undefined) => void;
}

/**
 * A platform that stops calling once its credential is dead: every call is refused at once with `platform_credential`, and
 * now and then one of them asks the platform whether the credential works again.
 */
export class CredentialBreaker implements Platform {
  readonly readLagMs: number;
  readonly #platform: Platform;
  readonly #clock: Clock;
  readonly #report: CredentialBreakerOptions['report'];
  #open: { error: RankdError; probeAt: number; waitMs: number } | undefined;

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

  group(call: CallContext): Promise<Group> {
    return this.#guard(call, () => this.#platform.group(call));
  }

  roles(call: CallContext): Promise<Role[]> {
    return this.#guard(call, () => this.#platform.roles(call));
  }

  getMember(userId: number, call: CallContext): Promise<Member | undefined> {
    return this.#guard(call, () => this.#platform.getMember(userId, call));
  }

  assignRole(change: RoleWrite, call: CallContext): Promise<Member> {
    return this.#guard(call, () => this.#platform.assignRole(change, call));
  }

  unassignRole(change: RoleWrite, call: CallContext): Promise<Member> {
    return this.#guard(call, () => this.#platform.unassignRole(change, call));
  }

  async checkCredential(call: CallContext): Promise<Credential> {
    const credential = await this.#platform.checkCredential(call);
    const refusal = refusalOfCredential(credential);
    if (refusal === undefined) this.#close();
    else this.#trip(refusal);
    return credential;
  }

  close(): Promise<void> {
    return this.#platform.close();
  }

  async #guard<T>(call: CallContext, work: () => Promise<T>): Promise<T> {
    await this.#probe(call);
    try {
      return await work();
    } catch (error) {
      if (isRankdError(error, 'platform_credential')) this.#trip(error);
      throw error;
    }
  }

  /** Throws while the breaker is open; the first caller after each wait asks the platform on behalf of all. */
  async #probe(call: CallContext): Promise<void> {
    const open = this.#open;
    if (open === undefined) return;
    const now = this.#clock.monotonic();
    if (now < open.probeAt) throw open.error;
    open.waitMs = Math.min(open.waitMs * 2, longestProbeMs);
    open.probeAt = now + open.waitMs;
    const refusal = refusalOfCredential(await this.checkCredential(call));
    if (refusal !== undefined) throw refusal;
  }

  #trip(error: RankdError): void {
    if (this.#open !== undefined) return;
    this.#open = { error, probeAt: this.#clock.monotonic() + firstProbeMs, waitMs: firstProbeMs };
    this.#report(error);
  }

  #close(): void {
    if (this.#open === undefined) return;
    this.#open = undefined;
    this.#report(undefined);
  }
}
