import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { DaemonProcess } from '../support/daemon-process.ts';
import { type FakeOpenCloud, type FakeOpenCloudOptions, startFakeOpenCloud } from '../support/fake-open-cloud/index.ts';
import { CliHome } from '../support/run-cli.ts';
import type { StoredChange } from './compare.ts';
import { loadConfigFor } from './fake-config.ts';

export const place = 42;

/** The built rankd on a fake Roblox. Its daemons run one after another, on the same data directory. */
export interface Bench extends AsyncDisposable {
  /** The daemon's home, in which tests can also run commands. */
  home: CliHome;
  fake: FakeOpenCloud;
  /** The secret of a key with `place` on its whitelist. */
  secret: string;
  /** Members added to the sample group, each with one role in addition to the base role. */
  members: number[];
  /** The initial roles of each member (ids, without the base role). */
  initialRoles: Map<number, number[]>;
  startDaemon(env?: Record<string, string>): Promise<DaemonProcess>;
  /** Returns all rank changes, oldest first. */
  history(): Promise<StoredChange[]>;
  /**
   * Waits up to `timeoutMs` until no change is pending or unknown. Resolves with the number of changes that still are.
   */
  openAfter(timeoutMs: number): Promise<number>;
}

/** The ranks between which the members of a bench are moved. None is the base role's. */
export const benchRanks = [10, 20, 50];

export async function openBench({
  memberCount,
  settings = '',
  ...options
}: FakeOpenCloudOptions & { memberCount: number; settings?: string }): Promise<Bench> {
  await using opened = new AsyncDisposableStack();
  const fake = await startFakeOpenCloud(options);
  opened.defer(() => fake.close());
  const home = opened.use(new CliHome());
  const initialRoles = addMembers(fake, memberCount);
  writeFileSync(home.path('rankd.yaml'), loadConfigFor(fake) + settings, { mode: 0o600 });
  const { secret } = await home.json<{ secret: string }>('key', 'create', 'bench');
  await home.json('whitelist', 'add', String(place), '--key', 'bench');
  const list = async (...args: string[]) => {
    const { changes } = await home.json<{ changes: StoredChange[] }>('history', 'list', '--limit', '100000', ...args);
    return changes.reverse();
  };
  const closers = opened.move();
  return {
    home,
    fake,
    secret,
    members: [...initialRoles.keys()],
    initialRoles,
    startDaemon: (env = {}) => DaemonProcess.start(home, { env: { RANKD_PLATFORM_API_KEY: fake.apiKey, ...env } }),
    history: () => list(),
    openAfter: async (timeoutMs) => {
      const giveUpAt = performance.now() + timeoutMs;
      for (;;) {
        const { length } = await list('--state', 'pending', 'unknown');
        if (length === 0 || performance.now() > giveUpAt) return length;
        await delay(500);
      }
    },
    [Symbol.asyncDispose]: () => closers.disposeAsync(),
  };
}

const firstMember = 2_001;

function addMembers(fake: FakeOpenCloud, count: number): Map<number, number[]> {
  const roles = benchRanks.flatMap((rank) => fake.group.roles.filter((role) => role.rank === rank));
  const members = Array.from({ length: count }, (_, index): [number, number[]] => [
    firstMember + index,
    roles.slice(index % roles.length, (index % roles.length) + 1).map(({ id }) => id),
  ]);
  for (const [userId, roleIds] of members) {
    fake.group.setMember(userId, roleIds);
    fake.expectNeverWithoutRole(userId);
  }
  return new Map(members);
}
