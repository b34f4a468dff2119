import { isRankdError } from '../base/errors.ts';
import type { Credential } from '../core/model.ts';
import type { Clock, Platform } from '../ports/index.ts';
import type { Meters, platformOperations } from './meters.ts';

/** Counts and times the platform's calls, and records the state of its credential. */
export function watchedPlatform(platform: Platform, meters: Meters, clock: Pick<Clock, 'monotonic'>): Platform {
  const timed = async <T>(operation: (typeof platformOperations)[number], work: () => Promise<T>): Promise<T> => {
    const startedAt = clock.monotonic();
    let outcome = 'ok';
    try {
      return await work();
    } catch (error) {
      outcome = isRankdError(error) ? error.code : 'internal';
      throw error;
    } finally {
      meters.platformCalls.inc({ operation, outcome });
      meters.platformSeconds.observe({ operation }, (clock.monotonic() - startedAt) / 1000);
    }
  };
  return {
    readLagMs: platform.readLagMs,
    get writeMs() {
      return platform.writeMs;
    },
    group: (call) => timed('group', () => platform.group(call)),
    roles: (call) => timed('roles', () => platform.roles(call)),
    role: (roleId, call) => timed('role', () => platform.role(roleId, call)),
    getMember: (userId, call) => timed('member', () => platform.getMember(userId, call)),
    membersWith: (list, call) => timed('members', () => platform.membersWith(list, call)),
    findUser: (name, call) => timed('user', () => platform.findUser(name, call)),
    userName: (userId, call) => timed('userName', () => platform.userName(userId, call)),
    placesOf: (universeId, call) => timed('places', () => platform.placesOf(universeId, call)),
    assignRole: (change, call) => timed('assign', () => platform.assignRole(change, call)),
    unassignRole: (change, call) => timed('unassign', () => platform.unassignRole(change, call)),
    checkCredential: async (call) => {
      const credential = await timed('credential', () => platform.checkCredential(call));
      noteCredential(meters, credential);
      return credential;
    },
    reserve: (kinds, call) => platform.reserve(kinds, call),
    pace: () => platform.pace(),
    surprises: () => platform.surprises(),
    reachability: () => platform.reachability(),
    close: () => platform.close(),
  };
}

const states = ['valid', 'disabled', 'expired', 'invalid'] as const satisfies Credential['state'][];

function noteCredential(meters: Meters, { state, userId, expiresAt }: Credential): void {
  if (state === 'unreported') return;
  for (const one of states) meters.credentialState.set({ state: one }, one === state ? 1 : 0);
  meters.credentialExpiry.reset();
  if (expiresAt !== undefined) meters.credentialExpiry.set({ acting_account: String(userId ?? '') }, expiresAt / 1000);
}
