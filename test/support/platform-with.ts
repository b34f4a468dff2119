import type { Platform } from '../../src/ports/index.ts';

/** Returns `inner` with some calls replaced, for a group that misbehaves in only one way. */
export function platformWith(inner: Platform, changes: Partial<Platform>): Platform {
  return {
    readLagMs: inner.readLagMs,
    get writeMs() {
      return inner.writeMs;
    },
    group: (call) => inner.group(call),
    roles: (call) => inner.roles(call),
    role: (roleId, call) => inner.role(roleId, call),
    getMember: (userId, call) => inner.getMember(userId, call),
    membersWith: (list, call) => inner.membersWith(list, call),
    reserve: (kinds, call) => inner.reserve(kinds, call),
    assignRole: (change, call) => inner.assignRole(change, call),
    unassignRole: (change, call) => inner.unassignRole(change, call),
    findUser: (name, call) => inner.findUser(name, call),
    userName: (userId, call) => inner.userName(userId, call),
    placesOf: (universeId, call) => inner.placesOf(universeId, call),
    checkCredential: (call) => inner.checkCredential(call),
    pace: () => inner.pace(),
    surprises: () => inner.surprises(),
    reachability: () => inner.reachability(),
    close: () => inner.close(),
    ...changes,
  };
}

/** Delays one member's calls on a wrapped group. `begun` resolves once the first call is waiting. */
export interface Held {
  platform: (group: Platform) => Platform;
  begun: Promise<void>;
  release: () => void;
}

/** Delays role assignments to a member until the test calls `release`. Each assignment passes its fence first. */
export function holdWrites({ userId = 1001 } = {}): Held {
  return hold(userId, (group, wait) => ({
    assignRole: async (change, { fence, ...call }) => {
      await fence?.();
      await wait(change.userId);
      return group.assignRole(change, call);
    },
  }));
}

/** Delays reads of a member until the test calls `release`. */
export function holdReads({ userId = 1001 } = {}): Held {
  return hold(userId, (group, wait) => ({
    getMember: async (about, call) => {
      await wait(about);
      return group.getMember(about, call);
    },
  }));
}

function hold(
  userId: number,
  held: (group: Platform, wait: (about: number) => Promise<void>) => Partial<Platform>,
): Held {
  const { promise: open, resolve: release } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const wait = async (about: number) => {
    if (about !== userId) return;
    begin();
    await open;
  };
  return { platform: (group) => platformWith(group, held(group, wait)), begun, release };
}
