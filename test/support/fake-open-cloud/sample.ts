import type { FakeGroup } from './group-state.ts';

/** The sample group's role ids. As on Roblox, ids do not follow the order of ranks, and some exceed 32 bits. */
export const sampleRoles = {
  guest: 70_000_003,
  base: 12_884_901_889,
  /** Shares rank 1 with the base role. */
  recruit: 70_000_010,
  trainee: 98_765_432_101,
  officer: 4_400_000_020,
  captain: 70_000_050,
  admin: 5_100_000_200,
  owner: 70_000_001,
};

/** User ids, most of them named after the user's role. `stranger` is not a member of the sample group. */
export const sampleUsers = {
  owner: 9_000,
  /** Holds the role `admin`. The key acts as this account. */
  actor: 9_001,
  trainee: 1_001,
  officer: 1_002,
  memberOnly: 1_003,
  traineeAndCaptain: 1_004,
  otherAdmin: 1_005,
  recruit: 1_006,
  /** Holds the role `officer`. The id is above 2^33. */
  bigId: 10_784_666_975,
  stranger: 5_555,
};

export interface FakeUser {
  id: number;
  name: string;
  previousNames?: string[];
  isBanned?: boolean;
}

export function sampleNames(): FakeUser[] {
  return [
    { id: sampleUsers.trainee, name: 'Newcomer', previousNames: ['OldNewcomer'] },
    { id: sampleUsers.officer, name: 'Patrol_Pat' },
    { id: sampleUsers.memberOnly, name: 'banned_bob', isBanned: true },
    { id: sampleUsers.actor, name: 'RankBot' },
    { id: sampleUsers.stranger, name: 'constructor' },
  ];
}

/**
 * A `new` group was created in March 2026 or later. An `old` group is older: Roblox has added a base role to it, in
 * addition to its own lowest role.
 */
export type GroupAge = 'old' | 'new';

/** A new group has neither the role nor the member `recruit`. */
export function sampleGroup(groupId: number, age: GroupAge): FakeGroup {
  const { guest, base, recruit, trainee, officer, captain, admin, owner } = sampleRoles;
  const isOld = age === 'old';
  return {
    id: groupId,
    name: 'Sample Fellowship',
    ownerId: sampleUsers.owner,
    locked: false,
    roles: [
      { id: owner, name: 'Owner', rank: 255, changeRank: true },
      { id: guest, name: 'Guest', rank: 0 },
      { id: captain, name: 'Captain', rank: 50, acceptRequests: true },
      { id: officer, name: 'Officer', rank: 20 },
      { id: admin, name: 'Admin', rank: 200, changeRank: true },
      { id: base, name: 'Member', rank: 1, isBase: true },
      ...(isOld ? [{ id: recruit, name: 'Recruit', rank: 1 }] : []),
      { id: trainee, name: 'Trainee', rank: 10 },
    ],
    members: {
      [sampleUsers.owner]: [owner],
      [sampleUsers.actor]: [admin],
      [sampleUsers.trainee]: [trainee],
      [sampleUsers.officer]: [officer],
      [sampleUsers.memberOnly]: [],
      [sampleUsers.traineeAndCaptain]: [trainee, captain],
      [sampleUsers.otherAdmin]: [admin],
      [sampleUsers.bigId]: [officer],
      ...(isOld ? { [sampleUsers.recruit]: [recruit] } : {}),
    },
  };
}
