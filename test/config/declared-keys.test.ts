import { afterEach, beforeEach, expect, test } from 'vitest';
import { mintKey } from '../../src/core/api-key.ts';
import { Sandbox } from './sandbox.ts';

const hash = 'ab'.repeat(32);

let box: Sandbox;
beforeEach(() => {
  box = new Sandbox();
});
afterEach(() => box[Symbol.dispose]());

/**
 * Loads a file with these lines below `keys:`, starting on line 3. Returns the error message; empty if there is none.
 */
function problemOf(...lines: string[]): string {
  box.write('rankd.yaml', `platform: { kind: simulated }\nkeys:\n${lines.join('\n')}\n`);
  try {
    box.load();
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
  return '';
}

test('a declared key needs a name and a hash; everything else has a default', () => {
  expect(problemOf('  - name: game', `    hash: ${hash}`)).toBe('');
  expect(box.load().config.keys).toEqual([
    {
      name: 'game',
      hash,
      mode: 'live',
      scopes: ['verify', 'rank'],
      rules: {},
      declaredIn: 'rankd.yaml:3',
      whitelist: { placeIds: [], declaredIn: 'rankd.yaml:3' },
      at: { name: 'rankd.yaml:3:11', hash: 'rankd.yaml:4:11' },
    },
  ]);
});

test('a key for Discord has for_discord instead of a hash, and cannot be a system key', () => {
  expect(problemOf('  - { name: staff, for_discord: true }')).toBe('');
  expect(box.load().config.keys).toMatchObject([{ name: 'staff', rules: { isForDiscord: true } }]);
  expect(box.load().config.keys[0]).not.toHaveProperty('hash');
  const either = 'expected either a hash, or for_discord: true for a key without a secret';
  expect(problemOf(`  - { name: staff, for_discord: true, hash: ${hash} }`)).toContain(either);
  expect(problemOf('  - { name: staff }')).toContain(either);
  expect(problemOf('  - { name: staff, for_discord: true, system: true }')).toContain('keys[0].system');
});

test('every setting of a declared key is applied', () => {
  const lines = ['mode: test', 'scopes: [rank, rank]', 'expires_at: 2030-01-31', 'max_rank: 50', 'min_rank: 50'];
  const rules = [
    'direction: demote',
    'self_rank: deny',
    'system: true',
    'privileged: true',
    'any_place: true',
    'rate: 7',
    'whitelist: [5, 6, 5]',
  ];
  expect(problemOf('  - name: game', `    hash: ${hash}`, ...[...lines, ...rules].map((line) => `    ${line}`))).toBe(
    '',
  );
  expect(box.load().config.keys[0]).toMatchObject({
    mode: 'test',
    scopes: ['rank'],
    expiresAt: Date.UTC(2030, 0, 31),
    rules: {
      maxRank: 50,
      minRank: 50,
      direction: 'demote',
      selfRank: 'deny',
      isSystem: true,
      isPrivileged: true,
      isAnyPlace: true,
      ratePerMinute: 7,
    },
    whitelist: { placeIds: [5, 6], declaredIn: 'rankd.yaml:16' },
  });
});

const name = '  - name: game';
const hashed = `    hash: ${hash}`;

test.each([
  ['no name', ['  - hash: x'], /rankd\.yaml:3:5 keys\[0\]\.name: has no value; expected 1 to 64/],
  ['an invalid hash', [name, '    hash: abc'], /rankd\.yaml:4:11 keys\[0\]\.hash: is "abc"; expected the 64 hex/],
  [
    'an entry that is not a mapping',
    ['  - game'],
    /rankd\.yaml:3:5 keys\[0\]: is "game"; expected a mapping with name and hash/,
  ],
  ['an unknown mode', [name, hashed, '    mode: dead'], /rankd\.yaml:5:11 keys\[0\]\.mode: .* one of live, test/],
  ['an unknown scope', [name, hashed, '    scopes: [all]'], /rankd\.yaml:5:14 keys\[0\]\.scopes\[0\]: is "all"/],
  ['an invalid time', [name, hashed, '    expires_at: soon'], /rankd\.yaml:5:17 keys\[0\]\.expires_at: is "soon"/],
  ['an invalid place', [name, hashed, '    whitelist: [0]'], /rankd\.yaml:5:17 keys\[0\]\.whitelist\[0\]: is 0/],
  ['a floor above the ceiling', [name, hashed, '    min_rank: 9', '    max_rank: 8'], /5:15 keys\[0\]\.min_rank: is 9/],
  [
    'a misspelled setting',
    [name, hashed, '    maxrank: 9'],
    /5:5 keys\[0\]\.maxrank: unknown setting; did you mean max_rank\?/,
  ],
  [
    'a repeated name',
    [name, hashed, name, `    hash: ${'cd'.repeat(32)}`],
    /5:11 keys\[1\]\.name: .* a value other than that of keys\[0\]\.name$/,
  ],
  [
    'a repeated hash',
    [name, hashed, '  - name: other', hashed],
    /6:11 keys\[1\]\.hash: .* a value other than that of keys\[0\]\.hash$/,
  ],
])('%s is refused with its position in the file', (_, lines, problem) => {
  expect(problemOf(...lines)).toMatch(problem);
});

test.each([
  ['2030-01-31', '2030-01-31T00:00:00.000Z'],
  ['2028-02-29T12:30Z', '2028-02-29T12:30:00.000Z'],
  ['2030-01-31T00:00:00.123456Z', '2030-01-31T00:00:00.123Z'],
  ['2030-01-31 00:00:00+02:00', '2030-01-30T22:00:00.000Z'],
])('%s is accepted as an expiry', (text, expected) => {
  expect(problemOf(name, hashed, `    expires_at: ${text}`)).toBe('');
  expect(new Date(box.load().config.keys[0]?.expiresAt ?? 0).toISOString()).toBe(expected);
});

test.each(['2030-02-30', '2030-02-30T00:00:00Z', '2030-01-31T00:00:00', '2030-01-31 (x)'])(
  '%s is refused as an expiry: it is not a date, or depends on the time zone of the machine',
  (text) => {
    expect(problemOf(name, hashed, `    expires_at: "${text}"`)).toContain(
      `expires_at: is "${text}"; expected a date, or a time with a UTC offset, such as "2027-01-31T00:00:00Z"`,
    );
  },
);

test('a misplaced secret is refused, and no error repeats it', () => {
  const { secret } = mintKey('live');
  for (const lines of [
    [name, `    hash: ${secret}`],
    [name, hashed, `    secret: ${secret}`],
    [`  - name: ${secret}`, hashed],
    [`  - ${secret}`],
  ]) {
    const problem = problemOf(...lines);
    expect(problem).toMatch(/rankd\.yaml:\d/);
    expect(problem).not.toContain(secret.slice(12, 30));
  }
  expect(problemOf(name, hashed, `    secret: ${secret}`)).toContain('give its hash');
});

test('a list of keys with every entry commented out is empty', () => {
  expect(problemOf('  # - name: game')).toBe('');
});
