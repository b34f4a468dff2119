import type { SystemUser } from '../base/system-user.ts';

/** What of `process` tells and changes the user whose rights hold; none of it is there on Windows. */
interface SystemIds extends Pick<NodeJS.Process, 'seteuid' | 'setegid' | 'setgroups'> {
  geteuid?: (() => number) | undefined;
  getegid?: (() => number) | undefined;
}

/**
 * With whose rights this process works: those of the caller, who started it, until root acts as another user. The caller's can be had
 * back, so this holds off what a file or folder of another user leads to, and not code that runs in this process.
 */
export class Rights {
  readonly #ids: SystemIds;
  #caller: SystemUser | undefined;

  constructor(ids: SystemIds) {
    this.#ids = ids;
  }

  /** The user whose rights hold now; `undefined` on Windows. */
  get user(): SystemUser | undefined {
    const { geteuid, getegid } = this.#ids;
    return geteuid && getegid && { uid: geteuid(), gid: getegid() };
  }

  /** Whether another user's rights than the caller's hold. */
  get areAnothers(): boolean {
    return this.#caller !== undefined && this.user?.uid !== this.#caller.uid;
  }

  /** From here on the rights of `user` hold. Throws what the system throws; only root may. */
  actAs(user: SystemUser): void {
    this.#caller ??= this.user;
    this.#ids.setgroups?.([]);
    this.#become(user);
  }

  /** Does `work`, which must not wait for anything, with the rights of the caller. */
  asCaller<T>(work: () => T): T {
    const actor = this.user;
    if (this.#caller === undefined || actor === undefined) return work();
    this.giveBack();
    try {
      return work();
    } finally {
      this.#become(actor);
    }
  }

  /** From here on the rights of the caller hold again. */
  giveBack(): void {
    if (this.#caller === undefined) return;
    this.#ids.seteuid?.(this.#caller.uid); // first: only root may change its group
    this.#ids.setegid?.(this.#caller.gid);
  }

  #become({ uid, gid }: SystemUser): void {
    this.#ids.setegid?.(gid);
    this.#ids.seteuid?.(uid);
  }
}
