import { withoutKeys } from './api-key.ts';

type PlatformGroup =
  | { kind: 'open-cloud'; groupId: number; baseUrl: string }
  | { kind: 'simulated'; groupFile: string | undefined };

/** Returns a title that no two groups share. It keeps the changes and idempotency keys of different groups apart. */
export function groupTitle(platform: PlatformGroup): string {
  if (platform.kind === 'open-cloud') return `group ${platform.groupId} on ${new URL(platform.baseUrl).host}`;
  return platform.groupFile === undefined ? simulatedGroup : withoutKeys(`${simulatedGroup} of ${platform.groupFile}`);
}

/** Every simulated group's title starts with this text, and no other title does. */
export const simulatedGroup = 'the simulated group';

export function isSimulatedGroup(title: string): boolean {
  return title.startsWith(simulatedGroup);
}

/** Returns a real group's id from its title, or `undefined` if the group is simulated. */
export function groupIdIn(title: string): number | undefined {
  const id = /^group (\d+) /.exec(title)?.[1];
  return id === undefined ? undefined : Number(id);
}
