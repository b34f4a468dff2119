import type { GroupSeed } from './simulated-group.ts';

/**
 * The group that rankd simulates by default. Most ids are easy to type, but some are above 2^32, as real ids can be.
 * Like most real groups, it has a custom role with rank 1 in addition to the base role.
 */
export const sampleGroup: GroupSeed = {
  id: 1,
  name: 'Simulated Group',
  ownerId: 9000,
  actingUserId: 9001,
  roles: [
    { id: 70_000, name: 'Guest', rank: 0, kind: 'guest' },
    { id: 12_884_901_889, name: 'Member', rank: 1, kind: 'base' },
    { id: 70_001, name: 'Recruit', rank: 1, kind: 'custom' },
    { id: 70_010, name: 'Trainee', rank: 10, kind: 'custom' },
    { id: 70_020, name: 'Officer', rank: 20, kind: 'custom' },
    { id: 8_589_934_642, name: 'Captain', rank: 50, kind: 'custom' },
    { id: 70_200, name: 'Admin', rank: 200, kind: 'custom' },
    { id: 70_255, name: 'Owner', rank: 255, kind: 'owner' },
  ],
  members: [
    { userId: 1001, roleIds: [70_010] },
    { userId: 1002, roleIds: [70_020] },
    { userId: 1003, roleIds: [70_010, 8_589_934_642] },
    { userId: 1004, roleIds: [] },
    { userId: 1005, roleIds: [70_010] },
    { userId: 1006, roleIds: [70_020] },
    { userId: 1007, roleIds: [8_589_934_642] },
    { userId: 1008, roleIds: [70_001] },
    { userId: 1009, roleIds: [70_010, 70_020] },
    { userId: 1010, roleIds: [70_200] },
    { userId: 8_589_935_601, roleIds: [70_020] },
    { userId: 9000, roleIds: [70_255] },
    { userId: 9001, roleIds: [70_200] },
  ],
  users: [
    { id: 1001, name: 'Newcomer' },
    { id: 1002, name: 'Patrol_Pat' },
    { id: 1003, name: 'CaptainKim' },
  ],
};
