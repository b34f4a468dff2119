import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { isRankdError } from '../../src/base/errors.ts';
import { loadGroupFile } from '../../src/platforms/group-file.ts';
import { tempDir } from '../support/temp-dir.ts';

const fixture = new URL('../fixtures/group.yaml', import.meta.url).pathname;
const head = 'name: Mine\nid: 7\n';

let file: string;

beforeEach(() => {
  file = join(tempDir(), 'mine.yaml');
});

test('a group file is read, and the roles that every group has are added', () => {
  expect(loadGroupFile(fixture)).toEqual({
    id: 4242,
    name: 'Night Shift Rangers',
    ownerId: 1,
    actingUserId: 2,
    roles: [
      { id: 10_000, name: 'Guest', rank: 0, kind: 'guest' },
      { id: 10_255, name: 'Owner', rank: 255, kind: 'owner' },
      { id: 10_001, name: 'Ranger', rank: 1, kind: 'base' },
      { id: 30_001, name: "Founder's Friend", rank: 1, kind: 'custom' },
      { id: 10_010, name: 'Scout', rank: 10, kind: 'custom' },
      { id: 5_000_000_000, name: 'Sergeant', rank: 20, kind: 'custom' },
      { id: 10_200, name: 'Commander', rank: 200, kind: 'custom' },
      { id: 30_200, name: 'Quartermaster', rank: 200, kind: 'custom' },
    ],
    members: [
      { userId: 2, roleIds: [10_200] },
      { userId: 10_784_666_975, roleIds: [10_010, 30_001] },
      { userId: 11, roleIds: [5_000_000_000] },
      { userId: 12, roleIds: [] },
      { userId: 1, roleIds: [10_255] },
    ],
    users: [{ id: 11, name: 'Scout_11' }],
  });
});

test('a group without an owner has no owner role', () => {
  const seed = load(`${head}roles: []\nacting_account: 2\nmembers: [{ id: 2 }]\n`);
  expect(seed.roles.map((role) => role.kind)).toEqual(['guest', 'base']);
  expect(seed).not.toHaveProperty('ownerId');
});

test('the owner may be listed among the members, and may be the acting account', () => {
  const seed = load(
    `${head}roles: [{ name: A, rank: 5 }]\nowner: 1\nacting_account: 1\nmembers: [{ id: 1, roles: [255, 5] }]\n`,
  );
  expect(seed.members).toEqual([{ userId: 1, roleIds: [10_255, 10_005] }]);
});

test('for a member, rank 1 means the custom role of rank 1, and a base role is added if none is marked', () => {
  const seed = load(
    `${head}roles: [{ name: Recruit, rank: 1, base: false }]\nacting_account: 2\nmembers: [{ id: 2, roles: [1] }]\n`,
  );
  expect(seed.roles).toEqual([
    { id: 10_000, name: 'Guest', rank: 0, kind: 'guest' },
    { id: 10_256, name: 'Member', rank: 1, kind: 'base' },
    { id: 10_001, name: 'Recruit', rank: 1, kind: 'custom' },
  ]);
  expect(seed.members).toEqual([{ userId: 2, roleIds: [10_001] }]);
});

test('all invalid values are reported together, each with its position', () => {
  const text =
    'name: ""\nroles:\n  - { name: A, rank: 256 }\n  - { nam: B, rank: 2, id: 12 }\nacting_account: 2\nmembers: [{ id: "9", roles: 3 }]\n';
  expect(problems(text)).toEqual([
    `${file}:1:1 id must be a whole number from 1 to 2^53-1`,
    `${file}:1:7 name must not be empty`,
    `${file}:3:22 roles[0].rank must be 255 or less`,
    `${file}:4:5 roles[1].name must be text`,
    `${file}:4:12 roles[1].nam is not a setting of a group file`,
    `${file}:4:28 roles[1].id must be above 255: smaller numbers mean ranks`,
    `${file}:6:17 members[0].id must be a whole number from 1 to 2^53-1`,
    `${file}:6:29 members[0].roles must be a list of ranks or role ids`,
  ]);
});

test('all contradictions are reported together, each with its position', () => {
  const text = [
    'name: Mine',
    'id: 7',
    'roles:',
    '  - { name: A, rank: 1 }',
    '  - { name: B, rank: 1, id: 900 }',
    '  - { name: C, rank: 5 }',
    '  - { name: D, rank: 5 }',
    'acting_account: 3',
    'members:',
    '  - { id: 2, roles: [5, 99, 0, 12345] }',
    '  - { id: 2, roles: [] }',
  ].join('\n');
  expect(problems(text)).toEqual([
    `${file}:5:22 roles[1].rank is 1 for two roles: mark one of them with \`base: true\``,
    `${file}:7:5 roles[3] has the same id as roles[2], 10005; roles that share a rank need different ids`,
    `${file}:8:17 acting_account must be one of the members or the owner; 3 is neither`,
    `${file}:10:22 members[0].roles[0] names rank 5, which two roles share; use a role id`,
    `${file}:10:25 members[0].roles[1] is 99, but the group has no such rank or role id`,
    `${file}:10:29 members[0].roles[2] names the guest role, which no member holds`,
    `${file}:10:32 members[0].roles[3] is 12345, but the group has no such rank or role id`,
    `${file}:11:11 members[1].id is the same as the id of members[0], 2`,
  ]);
});

test.each([
  [
    'a member id above 2^53-1',
    'roles: []\nacting_account: 2\nmembers: [{ id: 9007199254740993 }]',
    '5:17 members[0].id',
  ],
  [
    'a second owner role',
    'roles: [{ name: A, rank: 255 }, { name: B, rank: 255, id: 900 }]\nacting_account: 2',
    '3:50 roles[1].rank',
  ],
  [
    'a member who is not the owner with the owner role',
    'roles: []\nowner: 1\nacting_account: 1\nmembers: [{ id: 2, roles: [255] }]',
    '6:28 members[0].roles[0]',
  ],
  [
    'a guest role that is marked as the base role',
    'roles: [{ name: A, rank: 0, base: true }]\nacting_account: 2',
    '3:35 roles[0].base',
  ],
  [
    'a base role that is not the lowest',
    'roles: [{ name: A, rank: 3 }, { name: B, rank: 5, base: true }]\nacting_account: 2',
    '3:57 roles[1].base cannot mark rank 5: the role that every member holds is the lowest, and roles[0] is below it',
  ],
  [
    'a second base role',
    'roles: [{ name: A, rank: 1, base: true }, { name: B, rank: 2, base: true }]\nacting_account: 2',
    '3:69 roles[1].base',
  ],
  ['text that is not YAML', 'roles: [', '3:9'],
  ['an alias without an anchor', 'roles: *none', '1:1 Unresolved alias'],
])('%s is reported with its position', (_, text, place) => {
  expect(problems(head + text)[0]).toContain(`${file}:${place}`);
});

test('the error for an empty file lists the fields of a group file', () => {
  expect(problems('')).toEqual([
    `${file}:1:1 the file must describe a group: name, id, roles, owner, acting_account, members`,
  ]);
});

test('the error for a missing file names it', () => {
  expect(() => loadGroupFile(file)).toThrow(
    expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(file) }),
  );
});

function load(text: string) {
  writeFileSync(file, text);
  return loadGroupFile(file);
}

/** Returns the problems reported for an invalid group file; fails if the file is accepted. */
function problems(text: string): string[] {
  try {
    load(text);
  } catch (error) {
    if (!isRankdError(error, 'config_invalid')) throw error;
    expect(error.hint).toBeDefined();
    return error.message
      .replace(/^.*?(problems:\n|not valid: )/, '')
      .split('\n')
      .map((line) => line.trim());
  }
  throw new Error('the group file was accepted');
}
