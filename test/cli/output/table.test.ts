import { afterEach, expect, test, vi } from 'vitest';
import { paints, plain } from '../../../src/base/paint.ts';
import { ago, isColored, table, when } from '../../../src/cli/output/table.ts';
import { displayWidth } from '../../../src/cli/output/text.ts';

afterEach(() => vi.unstubAllEnvs());

test.each([
  ['Officer', 7],
  ['', 0],
  ['rk_live_abc…xyz', 15],
  ['Général', 7],
  ['Ge\u0301ne\u0301ral', 7], // each accent is a combining character
  ['船長', 4],
  ['ｶﾅ', 2], // half-width
  ['Ａ１', 4], // full-width
  ['대장', 4],
  ['\u1112\u1161\u11ab', 2], // one syllable of Hangul, in three parts
  ['👑', 2],
  ['👩‍🚀 Pilot', 8], // a woman and a rocket, joined
  ['👨‍👩‍👧‍👦', 2],
  ['❤️', 2],
  ['❤', 1],
  ['🇫🇷', 2],
  ['1️⃣', 2],
  ['👍🏽', 2],
  ['นาย', 3],
  ['ที่', 1], // one consonant with two marks above it
  ['Командир', 8],
  ['\u{20000}', 2],
])('%j takes %i columns', (text, columns) => {
  expect(displayWidth(text)).toBe(columns);
});

test('columns are aligned for names in any script', () => {
  const rows = [
    ['船長', '255'],
    ['👩‍🚀 Pilot', '20'],
    ['Ge\u0301ne\u0301ral', '10'],
    ['Member', '1'],
  ];
  expect(table(['role', 'rank'], rows)().split('\n')).toEqual([
    'ROLE      RANK',
    '船長      255',
    '👩‍🚀 Pilot  20',
    'Ge\u0301ne\u0301ral   10',
    'Member    1',
  ]);
});

const rows = [
  ['key_1', 'active', '-', 'a note of many words, longer than there is room for beside the others'],
  ['key_2', 'revoked', '-', '-'],
];
const headings = ['id', 'state', 'until', 'note'];

test('a table that is not on a screen has all columns in full', () => {
  expect(table(headings, rows)()).toBe(
    `ID     STATE    UNTIL  NOTE
key_1  active   -      a note of many words, longer than there is room for beside the others
key_2  revoked  -      -`,
  );
});

test.each([
  [50, 'cut', ['key_1  active   a note of many words, longer than…']],
  [
    30,
    'below its row',
    ['key_1  active', '  note: a note of many words,', '  longer than there is room', '  for beside the others'],
  ],
])('on a screen of %i columns, an empty column is omitted, and the last column is %s', (columns, _, lines) => {
  const shown = table(headings, rows)({ columns, paint: plain, now: 0 });
  expect(shown.split('\n').slice(1, -1)).toEqual(lines);
});

test('states are colored, headings bold, and ids dim', () => {
  expect(table(['id', 'state'], [['key_1', 'active (test)']])({ columns: 80, paint: paints, now: 0 })).toBe(
    '\u001b[1mID\u001b[22m     \u001b[1mSTATE\u001b[22m\n\u001b[2mkey_1\u001b[22m  \u001b[32mactive\u001b[39m (test)',
  );
});

test.each<[Record<string, string>, boolean]>([
  [{ TERM: 'xterm' }, true],
  [{ TERM: 'dumb' }, false],
  [{ NO_COLOR: '1' }, false],
  [{ NO_COLOR: '' }, true],
  [{ NO_COLOR: '1', TERM: 'dumb', FORCE_COLOR: '1' }, true],
  [{ FORCE_COLOR: '0' }, false],
])('with %j, a terminal has colors: %s', (env, answer) => {
  expect(isColored(env)).toBe(answer);
});

test('times are short and local on a screen, but complete and in UTC elsewhere', () => {
  vi.stubEnv('TZ', 'Asia/Tokyo');
  const now = Date.parse('2026-11-24T14:30:00Z'); // 23:30 in Tokyo
  const screen = { columns: 80, paint: plain, now };
  const shown = (at: string, format = when) => {
    const cell = format(Date.parse(at));
    return typeof cell === 'string' ? cell : [cell(screen), cell()];
  };
  expect(shown('2026-11-24T07:01:09Z')).toEqual(['today 16:01', '2026-11-24T07:01:09.000Z']);
  expect(shown('2026-11-24T15:00:00Z')).toContain('tomorrow 00:00');
  expect(shown('2026-11-23T14:59:00Z')).toContain('yesterday 23:59');
  expect(shown('2026-03-01T16:00:00Z')).toContain('2 Mar 01:00');
  expect(shown('2027-12-31T15:00:00Z')).toContain('1 Jan 2028');
  expect(shown('2026-11-24T14:15:00Z', ago)).toEqual(['15 min ago', '2026-11-24T14:15:00.000Z']);
  expect(shown('2026-11-24T14:29:50Z', ago)).toContain('just now');
  expect(shown('2026-11-24T13:00:00Z', ago)).toContain('today 22:00');
  expect(when(undefined)).toBe('-');
});
