import type { Platform } from '../../src/ports.ts';

/** `inner` with some of its calls replaced: a group that misbehaves in just one way. */
export function platformWith(inner: Platform, changes: Partial<Platform>): Platform {
  return {
    readLagMs: inner.readLagMs,
    group: (call) => inner.group(call),
    roles: (call) => inner.roles(call),
    getMember: (userId, call) => inner.getMember(userId, call),
    reserveRoom: (kinds, call) => inner.reserveRoom(kinds, call),
    assignRole: (change, call) => inner.assignRole(change, call),
    unassignRole: (change, call) => inner.unassignRole(change, call),
    checkCredential: (call) => inner.checkCredential(call),
    pace: () => inner.pace(),
    close: () => inner.close(),
    ...changes,
  };
}

/** A group whose first write for a member (1001, unless another is named) begins and then waits until it is let go. */
export function holdWrites({ userId = 1001 } = {}): {
  platform: (group: Platform) => Platform;
  begun: Promise<void>;
  letGo: () => void;
} {
  const { promise: open, resolve: letGo } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const platform = (group: Platform) =>
    platformWith(group, {
      assignRole: async (change, call) => {
        if (change.userId !== userId) return group.assignRole(change, call);
        begin();
        await open;
        return group.assignRole(change, call);
      },
    });
  return { platform, begun, letGo };
}
